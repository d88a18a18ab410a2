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
    "strobe run examples/train_cnn.py --steps 200": "strobe run examples/train_cnn.py --steps 40",
}


def commands(document: str) -> list[str]:
    """What a document shows, as shell commands: lines of console blocks that begin with `$ `, and Python blocks."""
    found = []
    for kind, block in re.findall(r"```(console|python)\n(.*?)```", (ROOT / document).read_text(), flags=re.DOTALL):
        if kind == "python":
            found.append(f"python -c {shlex.quote(block)}")
        else:
            found += [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    return found


WITH_COMMANDS = [document for document in DOCUMENTS if commands(document)]


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder like a reader's clone: the examples, and nothing that a test could spoil."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


def test_the_main_documents_show_commands() -> None:
    assert {"README.md", "docs/tutorial.md"} <= set(WITH_COMMANDS)


@pytest.mark.torch
@pytest.mark.parametrize("document", WITH_COMMANDS)
def test_the_commands_of_a_document_work(desk: Path, document: str) -> None:
    pytest.importorskip("torch")
    bin_folder = Path(sys.executable).parent
    env = environment({"PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}", "BROWSER": "true"})
    for command in commands(document):
        if command.startswith("strobe view"):
            serve(command, desk, env)
            continue
        short = SHORTER.get(command, command)
        done = subprocess.run(["bash", "-c", short], cwd=desk, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"


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
