"""Every command that a document shows in a `console` block really works, in the order in which a reader types them."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from strobe.model import exit_codes
from tests.record.workshop import environment

ROOT = Path(__file__).parents[2]
# Decisions show code as it was when they were taken.
DOCUMENTS = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]
DOCUMENTS = [document for document in DOCUMENTS if not document.startswith("docs/decisions/")]
# Commands that stand for longer ones: tested elsewhere, or too slow for the whole of it.
SHORTER = {
    "./dev demo": f"{ROOT}/dev demo --no-view --steps 60",
    "./dev test": "true",  # this is it
    "pip install .": "true",  # ./dev sdist
    "strobe run examples/train_cnn.py --steps 100": "strobe run examples/train_cnn.py --steps 40",
    # Batches that are ready hide a short stall where the machine is busy.
    "strobe run examples/train_cnn.py --steps 200": "strobe run examples/train_cnn.py --steps 40 --stall-ms 2000",
}
LAUNCHES = re.compile(r"strobe (run|cc|metrics|sample) ")
# What is planted in the program of a tutorial, as its commands print it.
PLANTED = {
    "docs/tutorials/training.md": r"^\d+\ttrain\t\d+\t\d+\tdata_wait$",
    "docs/tutorials/service.md": r"^name\tcalls\ttotal_ns\tmax_ns\nstatement\t",
    "docs/tutorials/ranks.md": "of the time of their threads in read_shard",
    "docs/tutorials/mpi.md": "sweep < main",
    "docs/how-to/hangs.md": "rank 1 has not called it, its last call is all_gather 4 at main",
    "docs/tutorials/received-file.md": "every 7th step takes",
}
MPICH = ROOT / ".venv/mpich/bin"
# Ranks that wait leave the few cores to those that work.
SETTINGS = {"MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1", "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "256"}


def commands(document: str) -> list[str]:
    """What a document shows, as shell commands: lines of console blocks that begin with `$ `, and Python blocks."""
    found = []
    for kind, block in re.findall(r"```(console|python)\n(.*?)```", (ROOT / document).read_text(), flags=re.DOTALL):
        if kind == "python":
            found.append(f"python -c {shlex.quote(block)}")
        else:
            found += [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    if document.startswith("docs/coming-from/"):  # tables of what is called what: asked of the last run
        rows = re.findall(r"^\|.*\|(.*)\|$", (ROOT / document).read_text(), flags=re.MULTILINE)
        found += [code for row in rows for code in re.findall(r"`(strobe [^`]*)`", row) if not LAUNCHES.match(code)]
    return found


WITH_COMMANDS = [document for document in DOCUMENTS if commands(document)]


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder like a reader's clone: the examples, small traces, and nothing that a test could spoil."""
    for folder in ("examples", "tests/golden/traces", "tests/samples/flight_recorder"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def test_the_main_documents_show_commands() -> None:
    assert {"README.md", *PLANTED} <= set(WITH_COMMANDS)


@pytest.mark.torch
@pytest.mark.parametrize("document", WITH_COMMANDS)
def test_the_commands_of_a_document_work(desk: Path, document: str) -> None:
    pytest.importorskip("torch")
    if any("mpirun" in command for command in commands(document)) and not MPICH.exists():
        pytest.skip("mpich is not in .venv: ./dev record")
    folders = [str(Path(sys.executable).parent), str(MPICH), os.environ["PATH"]]
    cache = {"STROBE_CACHE": str(desk / "cache"), "PATH": os.pathsep.join(folders), "BROWSER": "true"}
    env = environment(SETTINGS | cache)
    printed = ""
    for command in commands(document):
        if command.startswith("strobe view"):
            serve(command, desk, env)
            continue
        short = SHORTER.get(command, command)
        done = subprocess.run(["bash", "-c", short], cwd=desk, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        printed += done.stdout + done.stderr
    assert re.search(PLANTED.get(document, ""), printed, re.MULTILINE), printed


def test_errors_are_as_the_page_about_them_explains(desk: Path) -> None:
    for name in ("gpu", "profile"):
        shutil.unpack_archive(desk / f"tests/golden/traces/{name}.tar.xz", desk)
    text = (ROOT / "docs/reference/errors.md").read_text()
    sections = re.findall(r"^## ([\d, and]+)(.*?)(?=^## |\Z)", text, flags=re.DOTALL | re.MULTILINE)
    explained = [int(code) for heading, _ in sections for code in re.findall(r"\d+", heading)]
    assert explained == sorted({*exit_codes.OF_READERS, *exit_codes.OF_LAUNCHERS})
    env = environment({"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"})
    for heading, section in sections:
        for command, shown in re.findall(r"```text\n\$ (.*?)\n(.*?)```", section, flags=re.DOTALL):
            done = subprocess.run(["bash", "-c", command], cwd=desk, env=env, capture_output=True, text=True)
            assert (done.returncode, command) == (int(heading), command), done.stderr
            assert done.stderr.startswith("strobe: ") or not shown
            assert [line for line in shown.splitlines() if line not in done.stderr] == [], done.stderr


def serve(command: str, folder: Path, env: dict[str, str]) -> None:
    """Start the view, wait for the address that it prints, and end it as Ctrl-C does."""
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command}"],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    seen = ""
    for line in process.stdout:
        seen += line
        if "http://" in line:
            break
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert "http://127.0.0.1" in seen or "http://localhost" in seen, seen
