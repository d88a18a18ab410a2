"""The recorder without the rest of strobe, as its wheel installs it: no package but the standard library."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

import strobe
from strobe import native

ROOT = Path(__file__).parents[2]
PROGRAM = "def work(n):\n    return n\n\n\nfor _ in range(40):\n    print(sum(work(n) for n in range(50)))\n"


@pytest.fixture(scope="module")
def wheels() -> ModuleType:
    """The tool that cuts the recorder out of a wheel."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        spec = spec_from_loader("wheels", SourceFileLoader("wheels", str(ROOT / "tools/wheels.py")))
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "tools"))
    return module


@pytest.fixture
def alone(wheels: ModuleType, tmp_path: Path) -> Path:
    """A folder with the files of the recorder's wheel."""
    folder = tmp_path / "alone"
    for source in (ROOT / "src/strobe", Path(native.core.__file__).parent):
        for file in source.rglob("*"):
            name = f"strobe/{file.relative_to(source)}"
            if file.is_file() and "__pycache__" not in name and wheels._is_of_recorder(name):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, folder / name)
    return folder


def ask(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """`strobe WORDS` from the files of a folder, without installed packages (-S)."""
    kept: Mapping[str, str] = {key: value for key, value in os.environ.items() if not key.startswith("STROBE_")}
    command = [sys.executable, "-S", "-m", "strobe", *words]
    environment = {**kept, "PYTHONPATH": str(folder)}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder.parent, env=environment, check=False)


@pytest.mark.every_python
def test_the_recorder_alone_records_what_the_whole_reads(alone: Path) -> None:
    (alone.parent / "program.py").write_text(PROGRAM)
    done = ask(alone, "run", "-o", "t.strobe", "program.py")
    assert (done.returncode, done.stdout) == (0, "1225\n" * 40), done.stderr
    assert f"recorded; where all of strobe is installed: strobe summary {alone.parent}/t.strobe" in done.stderr
    rows = strobe.open(alone.parent / "t.strobe").profile(step="all").to_pylist()
    assert {row["name"]: row["calls"] for row in rows}["work"] == 2000


def test_a_question_to_the_recorder_alone_is_refused_with_a_sentence(alone: Path) -> None:
    for words in (("summary", "t.strobe"), ("view",), ("t.strobe",), ("sql", "select 1")):
        done = ask(alone, *words)
        assert done.returncode == 5
        assert done.stderr == (
            "strobe: only the recorder of strobe is installed here: it reads no traces\n  pip install strobe\n"
        )


def test_doctor_and_config_of_the_recorder_alone_answer(alone: Path) -> None:
    findings = {each["name"]: each for each in json.loads(ask(alone, "doctor", "--json").stdout)["findings"]}
    assert findings["calls"]["state"] == "ok"
    assert (findings["traces"]["state"], "page" in findings) == ("note", False)
    assert "the recorder alone is installed" in findings["traces"]["found"]
    assert "limits" in ask(alone, "doctor").stdout
    assert "preset" in ask(alone, "config").stdout
    assert "strobe run" in ask(alone).stdout


def test_doctor_names_the_packages_that_a_machine_lacks_for_viewing(alone: Path) -> None:
    shutil.copytree(ROOT / "src/strobe/trace", alone / "strobe/trace")  # the whole, as far as it can be told
    done = ask(alone, "doctor", "--json")
    findings = {each["name"]: each for each in json.loads(done.stdout)["findings"]}
    assert findings["traces"]["state"] == findings["page"]["state"] == "missing"
    assert findings["traces"]["found"] == "not installed: numpy, pyarrow, duckdb. Traces cannot be read"
    assert findings["page"]["mend"] == "pip install starlette uvicorn"


def test_whoever_has_the_files_but_not_their_packages_is_told_which_one_is_missing(tmp_path: Path) -> None:
    done = ask(ROOT / "src", "summary", str(tmp_path))
    assert (done.returncode, done.stderr) == (
        5,
        "strobe: reading traces needs the package numpy, which is missing\n  pip install numpy\n",
    )
