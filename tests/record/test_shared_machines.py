"""Machines that others use, too: who can read what strobe writes, and what of a command line is in it."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import strobe
from strobe.errors import TraceError
from strobe.record.command_line import without_secrets
from tests.record.workshop import STROBE, Workshop, environment

NOBODY = 65534
PROGRAM = """
import os, subprocess, sys
print(os.umask(0), sys.argv[1:], flush=True)
def work(n):
    return n
for n in range(100):
    work(n)
subprocess.run([sys.executable, "-c", "import sys; print(sys.argv)", *sys.argv[1:]])
if os.fork() == 0:
    work(1)
    os._exit(0)
os.wait()
"""
SECRET = "s3cr3t-Value"
WORDS = ["--api-key", SECRET, f"--token={SECRET}", f"https://user:{SECRET}@host/x", "--steps", "5"]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody can look into; those of pytest are the user's."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def modes(folder: Path) -> dict[str, str]:
    """The modes of a folder and of everything in it that others, or the group, have a right to."""
    everything = [folder, *folder.rglob("*")]
    return {str(each): oct(mode) for each in everything if (mode := stat.S_IMODE(each.stat().st_mode)) & 0o077}


def run(folder: Path, *words: str, umask: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command of strobe under a umask."""
    return subprocess.run(
        [STROBE, *words], cwd=folder, env=environment(variables), umask=umask, capture_output=True, text=True
    )


def test_what_is_written_is_its_users_whatever_the_umask(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "a.folded").write_text("main;solve 10\n")
    done = run(tmp_path, "run", "program.py")
    assert done.stdout.startswith("0 "), done.stderr  # the program's own umask
    for words in (
        ["import", "a.folded"],
        ["cut", "program.strobe", "-o", "part", "--time", "0s-1s"],
        ["export", "program.strobe", "-o", "out.json"],
        ["summary", "a.folded", "-o", "text"],
    ):
        done = run(tmp_path, *words, STROBE_CACHE=str(tmp_path / "cache"))
        assert done.returncode == 0, done.stderr
    (tmp_path / "b.folded").write_text("main;solve 10\n")
    code = "import strobe; strobe.open('b.folded')"  # which imports into the cache
    command, env = [sys.executable, "-c", code], environment({"STROBE_CACHE": str(tmp_path / "cache")})
    subprocess.run(command, cwd=tmp_path, env=env, umask=0, check=True)
    for name in ("program.strobe", "a.folded.strobe", "part.strobe", "out.json", "text"):
        assert modes(tmp_path / name) == {}
    assert modes(*(tmp_path / "cache").glob("b.folded-*")) == {}
    (cache,) = {stat.S_IMODE((tmp_path / "cache").stat().st_mode)}
    assert cache == 0o700
    assert len([each for each in (tmp_path / "program.strobe").iterdir() if each.suffix == ".blocks"]) == 3


def test_the_umask_decides_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    plain = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, umask=0o027, capture_output=True, text=True, env=environment()
    )
    done = run(tmp_path, "run", "--quiet", "--access", "umask", "program.py", umask=0o027)
    assert done.stdout == plain.stdout
    assert stat.S_IMODE((tmp_path / "program.strobe").stat().st_mode) == 0o750
    assert stat.S_IMODE((tmp_path / "program.strobe/job.json").stat().st_mode) == 0o640
    run(tmp_path, "cut", "program.strobe", "-o", "part", "--time", "0s-1s", umask=0o027, STROBE_ACCESS="umask")
    assert stat.S_IMODE((tmp_path / "part.strobe").stat().st_mode) == 0o750


@as_root
@pytest.mark.parametrize("access", ["private", "umask"])
def test_another_user_reads_a_trace_only_where_that_is_asked_for(open_folder: Path, access: str) -> None:
    (open_folder / "program.py").write_text("print(1)\n")
    run(open_folder, "run", "--quiet", "--access", access, "program.py", umask=0o022)
    for name in os.listdir(open_folder / "program.strobe"):
        path = open_folder / "program.strobe" / name
        read = subprocess.run(["cat", str(path)], user=NOBODY, capture_output=True)
        assert (read.returncode == 0) == (access == "umask"), name
        if access == "umask":
            path.parent.chmod(0o755)


@as_root
def test_another_user_can_neither_read_nor_ask_a_run_that_is_being_recorded(open_folder: Path) -> None:
    (open_folder / "scratch").mkdir()
    code = "import os, time, strobe\nwhile not os.path.exists('stop'):\n    strobe.step()\n    time.sleep(0.01)\n"
    (open_folder / "program.py").write_text(code)
    words = [STROBE, "run", "--quiet", "--armed", "program.py"]
    variables = environment({"TMPDIR": str(open_folder / "scratch")})
    with subprocess.Popen(words, cwd=open_folder, env=variables, umask=0) as process:
        try:
            trace = open_folder / "program.strobe"
            while not list(trace.glob("window-*-node")):
                time.sleep(0.05)
                assert process.poll() is None
            assert modes(trace) == {}
            assert modes(open_folder / "scratch").keys() <= {str(open_folder / "scratch")}
            trace.chmod(0o755)  # even where others may look into the folder
            for file in trace.iterdir():
                for action in ('cat "$0"', 'echo >> "$0"'):
                    done = subprocess.run(["sh", "-c", action, str(file)], user=NOBODY, capture_output=True)
                    assert done.returncode != 0, (action, file.name)
        finally:
            (open_folder / "stop").touch()
            assert process.wait(60) == 0


@as_root
def test_another_user_reaches_neither_a_server_nor_what_was_sent_to_it(open_folder: Path) -> None:
    (open_folder / "a.folded").write_text("main;solve 10\n")
    variables = environment({"STROBE_CACHE": str(open_folder / "cache"), "TMPDIR": str(open_folder)})
    words = [STROBE, "view", "a.folded", "--no-browser"]
    server = subprocess.Popen(words, cwd=open_folder, env=variables, umask=0, stdout=subprocess.PIPE, text=True)
    with server:
        assert server.stdout is not None
        try:
            address = server.stdout.readline().strip()
            site = "/".join(address.split("/")[:4])
            request = urllib.request.Request(f"{site}/runs/upload?name=b.folded", b"main;solve 11\n", method="POST")
            with urllib.request.urlopen(request) as answer:
                assert answer.status == 200
            # Without the token nothing is answered, and nobody else can look for it.
            host, port = site.split("/")[2].split(":")
            ask = f"exec 3<>/dev/tcp/{host}/{port}; printf 'GET / HTTP/1.0\\r\\nHost: {host}\\r\\n\\r\\n' >&3; cat <&3"
            done = subprocess.run(["bash", "-c", ask], user=NOBODY, capture_output=True, text=True)
            assert done.stdout.split()[1].startswith("40"), done
            assert address.split("/")[3] not in done.stdout
            assert modes(open_folder / "cache") == {}
            assert [each.name for each in (open_folder / "cache").glob("b.folded-*")]
            found = subprocess.run(["ls", str(open_folder / "cache")], user=NOBODY, capture_output=True)
            assert found.returncode != 0
            arguments = Path(f"/proc/{server.pid}/cmdline").read_bytes()
            assert address.split("/")[3].encode() not in arguments
        finally:
            server.terminate()


def test_secrets_of_command_lines_are_not_written(workshop: Workshop) -> None:
    workshop.write("program.py", PROGRAM)
    outcome = workshop.recorded("program.py", *WORDS)
    assert outcome.stdout == workshop.plain("program.py", *WORDS).stdout
    assert outcome.stdout.count(SECRET) == 6  # the program has its words
    for path in outcome.trace.iterdir():
        assert SECRET.encode() not in path.read_bytes(), path
    command = json.loads((outcome.trace / "job.json").read_text())["command"]
    assert command[-6:] == ["--api-key", "***", "--token=***", "https://user:***@host/x", "--steps", "5"]
    trace = strobe.open(outcome.trace)
    assert all(str(argv).endswith("--steps 5") for (argv,) in trace.sql("select argv from processes").rows())


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("--password x y", "--password *** y"),
        ("--hf-token -v", "--hf-token -v"),
        ("--clientSecret=a=b", "--clientSecret=***"),
        ("model.api_key=abc +trainer.token=x", "model.api_key=*** +trainer.token=***"),
        ("WANDB_API_KEY=abc program", "WANDB_API_KEY=*** program"),
        ("http://h/?a=1&access_token=abc&b=2", "http://h/?a=1&access_token=***&b=2"),
        ("git+https://me:pw@h/x@v2 postgres://u:p@h", "git+https://me:***@h/x@v2 postgres://u:***@h"),
        ("sk-proj-abcdefghij0123456789", "sk-***"),
        ("hf_abcdefghijABCDEFGHIJ012345", "hf_***"),
        ("key=AKIAIOSFODNN7EXAMPLE", "key=AKIA***"),
        ("ghp_0123456789abcdefghij0123456789", "ghp_***"),
        # What is not a secret stays.
        ("--max-tokens 30 --tokenizer gpt2 --eos-token 2", "--max-tokens 30 --tokenizer gpt2 --eos-token 2"),
        ("--key 5 --sort-key=name --monkey x", "--key 5 --sort-key=name --monkey x"),
        ("https://host:8080/a@b user@host:path", "https://host:8080/a@b user@host:path"),
        ("sk-learn-benchmark hf_cache task-sk-1", "sk-learn-benchmark hf_cache task-sk-1"),
        ("--password", "--password"),
        ("", ""),
    ],
)
def test_what_is_secret_in_a_command_line(words: str, shown: str) -> None:
    assert without_secrets(words.split(" ")) == shown.split(" ")


def test_secrets_within_a_word() -> None:
    code = 'connect(password="a b", user="me")'
    assert without_secrets(["-c", code]) == ["-c", 'connect(password="***", user="me")']
    header = ["-H", "Authorization: Bearer abc"]
    assert without_secrets(header) == ["-H", "Authorization: ***"]
    assert without_secrets(["\udcff --token", "\udcff"]) == ["\udcff --token", "\udcff"]  # bytes that are not text


@pytest.mark.parametrize(("name", "why"), [(b"a\nb", "has a line break"), (b"a\xff", "is not in UTF-8")])
def test_a_path_that_cannot_be_recorded_to_is_refused_before_the_program_starts(
    tmp_path: Path, name: bytes, why: str
) -> None:
    (tmp_path / "program.py").write_text("print(1)\n")
    done = subprocess.run(
        [STROBE.encode(), b"run", b"-o", name, b"program.py"], cwd=tmp_path, env=environment(), capture_output=True
    )
    assert (done.stdout, done.returncode) == (b"", 125)
    assert done.stderr.decode().count("\n") == 2
    assert f"{why}\n" in done.stderr.decode()
    assert [each.name for each in tmp_path.iterdir()] == ["program.py"]
    os.mkdir(os.fsencode(tmp_path) + b"/" + name)
    done = subprocess.run(
        [STROBE, "run", "--quiet", "-o", str(tmp_path / "out"), "-c", "print(1)"],
        cwd=os.fsencode(tmp_path) + b"/" + name,
        env=environment(),
        capture_output=True,
    )
    assert (done.stdout, done.stderr, done.returncode) == (b"1\n", b"", 0)
    assert strobe.open(tmp_path / "out.strobe").info.process_count == 1


@pytest.mark.parametrize("kind", ["a device", "a pipe", "a socket", "Too many levels of symbolic links"])
@pytest.mark.parametrize("linked", [False, True])
def test_what_has_no_end_is_refused_at_once(tmp_path: Path, kind: str, linked: bool) -> None:
    path = tmp_path / "input"
    with socket.socket(socket.AF_UNIX) as server:
        if kind == "a pipe":
            os.mkfifo(path)
        elif kind == "a socket":
            server.bind(str(path))
        else:
            path.symlink_to("/dev/zero" if kind == "a device" else path)
        if linked:
            (tmp_path / "link").symlink_to(path)
            path = tmp_path / "link"
        with pytest.raises(TraceError, match=kind):
            strobe.open(path)


def test_a_folder_with_a_loop_and_a_pipe_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.folded").write_text("main;solve 10\n")
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert strobe.open(tmp_path).info.process_count == 1


@pytest.mark.parametrize("words", [("import",), ("summary",), ("import", "-o"), ("cut", "-o"), ("export", "-o")])
def test_a_path_that_is_not_utf_8_is_refused_with_a_sentence(tmp_path: Path, words: tuple[str, ...]) -> None:
    odd = os.fsencode(tmp_path) + b"/a\xff.folded"
    plain = tmp_path / "b.folded"
    for path in (os.fsdecode(odd), plain):
        Path(path).write_text("main;solve 10\n")
    verb, *option = (word.encode() for word in words)
    command = [STROBE.encode(), verb, *([os.fsencode(plain), *option] if option else []), odd]
    done = subprocess.run(command, capture_output=True, env=environment({"STROBE_CACHE": str(tmp_path / "cache")}))
    assert (done.stdout, done.returncode) == (b"", 4), done.stderr
    assert done.stderr.decode().startswith("strobe: the path '")
    assert "\\udcff.folded" in done.stderr.decode()
    assert "' is not in UTF-8\n" in done.stderr.decode()


def test_the_path_of_what_was_made_is_exact_where_a_program_reads_it(tmp_path: Path) -> None:
    (tmp_path / "a\x1b.folded").write_text("main;solve 10\n")
    done = subprocess.run([STROBE, "import", "a\x1b.folded"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("a\x1b.folded.strobe\n", 0), done.stderr


def test_an_exported_file_is_for_its_user_unless_it_was_there(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    run(tmp_path, "run", "--quiet", "program.py")
    before = os.umask(0o022)
    try:
        with strobe.open(tmp_path / "program.strobe") as trace:
            for form in ("chrome", "collapsed", "cube4", "html", "perfetto", "pprof", "speedscope"):
                old, new = tmp_path / f"old.{form}", tmp_path / f"new.{form}"
                old.touch(0o644)
                trace.export(old, form)
                trace.export(new, form)
                assert [stat.S_IMODE(each.stat().st_mode) for each in (old, new)] == [0o644, 0o600], form
    finally:
        os.umask(before)
