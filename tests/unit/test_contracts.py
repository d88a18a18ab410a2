"""The layers of the design hold, and the contracts that say so really notice a violation."""

import ast
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import strobe

ROOT = Path(__file__).parents[2]
# The editable install answers for `strobe` before sys.path does: without it the linter looks at the copy it stands in.
LINT = """
import sys
sys.meta_path = [finder for finder in sys.meta_path if "ditable" not in type(finder).__module__]
from importlinter.cli import lint_imports_command
sys.exit(lint_imports_command(["--config", "../pyproject.toml", "--no-cache", "--no-logo"]))
"""
VIOLATIONS = {
    "Data flows one way: record, trace, steps, analyse, present": ("steps/planted.py", "import strobe.cli"),
    "Recording needs nothing but the standard library and the core": ("record/planted.py", "import pyarrow"),
    "Reading and recording do not know each other": ("trace/planted.py", "import strobe.record"),
    "Analyses do not import each other": ("answers/gpu/planted.py", "import strobe.answers.gpu.planted_too"),
    "Analyses are declared without what computes them": ("analyses/gpu/planted.py", "import numpy"),
    "Rules do not import each other": ("advice/planted.py", "import strobe.advice.planted_too"),
    "Formats do not import each other": ("formats/planted.py", "import strobe.formats.planted_too"),
    "Formats in one folder do not import each other": (
        "formats/profiles/planted.py",
        "import strobe.formats.profiles.planted_too",
    ),
    "Adapters do not import each other": ("record/adapters/planted.py", "import strobe.record.adapters.planted_too"),
    "The core is reached through these doors only": ("present/planted.py", "import strobe.native"),
    "Only tables.query_engine knows the query engine": ("tables/planted.py", "import duckdb"),
}


def lint(folder: Path) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", LINT], cwd=folder / "src", capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def copy(folder: Path) -> Path:
    """A copy of the sources that a test may spoil."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the linter says of a tree with every violation."""
    folder = copy(tmp_path_factory.mktemp("planted"))
    for place, code in VIOLATIONS.values():
        path = folder / "src/strobe" / place
        path.write_text(code + "\n")
        path.with_name("planted_too.py").touch()
    status, text = lint(folder)
    assert status == 1, text
    return text


def test_every_contract_has_a_planted_violation() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert {contract["name"] for contract in contracts} == set(VIOLATIONS)


def test_the_tree_keeps_every_contract(tmp_path: Path) -> None:
    code, text = lint(copy(tmp_path))
    assert code == 0, text
    assert f"{len(VIOLATIONS)} kept, 0 broken" in text


@pytest.mark.parametrize("contract", VIOLATIONS)
def test_a_planted_violation_breaks_its_contract(planted: str, contract: str) -> None:
    place, code = VIOLATIONS[contract]
    assert f"{contract} BROKEN" in planted
    _, _, reasons = planted.partition(f"\n{contract}\n---")
    reasons, _, _ = reasons.partition("\n\n\n")
    module = f"strobe.{place.removesuffix('.py').replace('/', '.')}"
    assert [line.lstrip("- ") for line in reasons.splitlines() if " -> " in line] == [
        f"{module} -> {code.removeprefix('import ')} (l.1)"
    ]


def test_recording_imports_no_heavy_package() -> None:
    """import-linter sees neither what a package's __init__ imports nor what an extension module does: Python does."""
    ours = "strobe.record.launch.run_program, strobe.record.program.bootstrap"
    code = f"import sys, json, {ours}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    plain = subprocess.run(
        [sys.executable, "-I", "-c", "import sys, json; print(json.dumps(sorted(sys.modules)))"],
        capture_output=True,
        text=True,
        check=True,
    )
    added = {name.partition(".")[0] for name in set(json.loads(done.stdout)) - set(json.loads(plain.stdout))}
    assert {name for name in added if name not in sys.stdlib_module_names} == {"strobe"}


def test_only_one_module_knows_the_extension() -> None:
    """The extension has no source that the linter could see: its importers are found in the syntax trees."""
    importers = set()
    for path in (ROOT / "src/strobe").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            if any("_native" in name.split(".") for name in [*names, module]):
                importers.add(path.relative_to(ROOT / "src/strobe").as_posix())
    assert importers == {"native.py"}


def test_importing_strobe_imports_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import strobe; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert {name for name in done.stdout.split() if name.partition(".")[0] not in sys.stdlib_module_names} == {"strobe"}


def test_every_public_name_is_listed_and_exists() -> None:
    assert strobe.__all__ == sorted(strobe.__all__)
    private = {"TYPE_CHECKING", "annotations", "import_module", "load_ipython_extension"}
    code = "import strobe; print(*[name for name in dir(strobe) if not name.startswith('_')])"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) - private == {name for name in strobe.__all__ if not name.startswith("_")}
    for name in strobe.__all__:
        assert getattr(strobe, name) is not None


def test_no_lock_file_holds_a_download_address() -> None:
    """A lock file made behind a mirror names that mirror: nobody else could install from it."""
    assert '"resolved"' not in (ROOT / "web/package-lock.json").read_text()
    assert "://" not in (ROOT / "constraints.txt").read_text()
    assert not list(ROOT.glob("*.lock"))
