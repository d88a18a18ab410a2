"""`./dev traces` puts the public traces in place, and nobody overlooks that they are missing."""

import hashlib
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUMS = b"file,kernels\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree of which one trace is wanted, and a folder `offered` that has it."""
    for name in ("tools/traces.py", "tests/conftest.py", "tests/public.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    sha256 = hashlib.sha256(SUMS).hexdigest()
    (tmp_path / "tests/traces.toml").write_text(f'[[origin]]\nfiles = [["{sha256}", {len(SUMS)}, "a/sums.csv"]]\n')
    test = "def test_one(public_folder):\n    assert (public_folder / 'a/sums.csv').is_file()\n"
    (tmp_path / "tests/test_one.py").write_text(test)
    (tmp_path / "offered/a").mkdir(parents=True)
    (tmp_path / "offered/a/sums.csv").write_bytes(SUMS)
    return tmp_path


def run(tree: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def address(tree: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tree / "offered")) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_traces_come_from_a_folder_and_from_an_address(tree: Path, address: str) -> None:
    for place in ("offered", address):
        shutil.rmtree(tree / "build", ignore_errors=True)
        status, text = run(tree, "tools/traces.py", place)
        assert status == 0, text
        assert (tree / "build/traces/a/sums.csv").read_bytes() == SUMS
    assert run(tree, "tools/traces.py", "nowhere")[0] == 0, "what is there and sound is not fetched again"
    (tree / "build/traces/a/sums.csv").write_bytes(b"torn")
    assert run(tree, "tools/traces.py", STROBE_TRACES="offered")[0] == 0
    assert (tree / "build/traces/a/sums.csv").read_bytes() == SUMS


def test_another_content_is_refused(tree: Path) -> None:
    (tree / "offered/a/sums.csv").write_bytes(b"file,streams\n")
    status, text = run(tree, "tools/traces.py", "offered")
    assert status == 1
    assert "a/sums.csv in offered has another SHA-256" in text
    assert not (tree / "build/traces/a/sums.csv").exists()


def test_a_test_without_its_traces_is_skipped_and_with_complete_it_fails(tree: Path) -> None:
    pytest_here = ("-m", "pytest", "-ra", "-p", "no:cacheprovider", "tests/test_one.py")
    status, text = run(tree, *pytest_here)
    assert (status, "1 skipped" in text, "run ./dev traces" in text) == (0, True, True), text
    status, text = run(tree, *pytest_here, "--complete")
    assert (status, "1 error" in text, "run ./dev traces" in text) == (1, True, True), text
    assert run(tree, "tools/traces.py", "offered")[0] == 0
    status, text = run(tree, *pytest_here, "--complete")
    assert (status, "1 passed" in text) == (0, True), text
