"""`strobe sample`: processes that run already, against programs that know their own times, threads and stacks."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import pytest

import strobe
from tests.record.workshop import STROBE, TIMEOUT_S, Workshop, environment

# Work is counted in CPU time of its own thread: how busy the machine is does not matter. A line on stdin ends it.
PROGRAM = """
    import asyncio, json, sys, threading, time, zlib

    def spin(seconds):
        end = time.thread_time() + seconds
        x = 0
        while time.thread_time() < end:
            for i in range(2000):
                x = (x * 3 + i) % 1000003  # the line that runs

    def recurse(depth):
        if depth:
            return recurse(depth - 1)
        while not over.is_set():
            spin(0.01)

    def chain(depth):
        if depth:
            yield from chain(depth - 1)
        while not over.is_set():
            spin(0.01)
            yield

    def generators():
        for _ in chain(100):
            pass

    async def inner():
        while not over.is_set():
            spin(0.005)
            await asyncio.sleep(0)

    async def outer():
        await inner()

    def coroutines():
        asyncio.run(outer())

    def blocked():
        with lock:
            pass

    def compressing():
        data = bytes(range(256)) * 40000
        while not over.is_set():
            zlib.compress(data, 9)

    over, lock = threading.Event(), threading.Lock()
    lock.acquire()
    sys.setrecursionlimit(5000)
    threading.stack_size(64 << 20)
    kinds = [lambda: recurse(2000), generators, coroutines, blocked, compressing]
    names = ["deep", "generators", "coroutines", "blocked", "compressing"]
    threads = [threading.Thread(target=kind, name=f"the {name} thread") for kind, name in zip(kinds, names)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    print("ready", json.dumps({thread.name: thread.native_id for thread in threads}), flush=True)
    sys.stdin.readline()
    over.set()
    lock.release()
    for thread in threads:
        thread.join()
    print("done")
    sys.exit(7)
"""
SHARES = """
    import time

    def spin(seconds):
        end = time.thread_time() + seconds
        x = 0
        while time.thread_time() < end:
            for i in range(2000):
                x = (x * 3 + i) % 1000003

    def sixty():
        spin(0.012)

    def thirty():
        spin(0.006)

    def ten():
        spin(0.002)

    print("ready", flush=True)
    input()
    while time.process_time() < 1.5:
        sixty()
        thirty()
        ten()
"""
SPINS = """
    import sys, threading
    told = []
    threading.Thread(target=lambda: told.append(sys.stdin.readline())).start()
    print("ready", flush=True)
    while not told:
        pass
"""
ALL = ("3.11", "3.12", "3.13", "3.14", "3.15")


def interpreter(version: str) -> str:
    """The path of a Python that works, whatever Python runs strobe."""
    if sys.version.startswith(version + "."):
        return sys.executable
    for folder in os.environ["PATH"].split(os.pathsep):  # a launcher of pyenv may be there that starts nothing
        found = shutil.which(f"python{version}", path=folder)
        if found and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0:
            return found
    pytest.skip(f"there is no python{version}")


class Running(NamedTuple):
    """A program that waits for a line on stdin, and what it printed behind `ready`."""

    process: "subprocess.Popen[str]"
    printed: str

    @property
    def pid(self) -> int:
        return self.process.pid

    def end(self) -> str:
        """Let it end, and return what it printed."""
        return self.process.communicate("\n", timeout=TIMEOUT_S)[0]


@contextmanager
def running(*command: str, folder: Path, env: dict[str, str] | None = None) -> Iterator[Running]:
    """Start a program without strobe."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, text=True, cwd=folder, env=environment(env), **pipes) as process:
        try:
            line = cast("IO[str]", process.stdout).readline()
            assert line.startswith("ready"), line
            yield Running(process, line.removeprefix("ready"))
        finally:
            process.kill()


def sample(folder: Path, *words: str, prefix: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
    """`strobe sample WORDS` into out.strobe."""
    command = [*prefix, STROBE, "sample", "-o", "out", *words]
    return subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def samples_of(trace: strobe.Trace) -> list[dict[str, Any]]:
    """Samples with the name of their thread, and their stack as names of functions."""
    names = trace.locations.column("name")
    rows = cast("list[dict[str, Any]]", trace.side_table("samples").to_pylist())
    return [
        {**row, "thread": names[row["location"]], "stack": re.findall(r"(?m)^(.+) \(.+\)$", row["call_stack"])}
        for row in rows
        if row["call_stack"]
    ]


@pytest.mark.parametrize("version", ALL)
def test_threads_stacks_and_states_are_those_of_the_program(tmp_path: Path, version: str) -> None:
    """One run, because a run takes seconds: each thread of it does one thing that is known."""
    program = Workshop(tmp_path).write("kinds.py", PROGRAM)
    with running(interpreter(version), str(program), folder=tmp_path) as target:
        done = sample(tmp_path, str(target.pid), "--for", "3s")
        assert done.returncode == 0, done.stderr
        # The program did not notice: its output and its exit code are its own.
        assert (target.end(), target.process.returncode) == ("done\n", 7)
    trace = strobe.open(tmp_path / "out.strobe")
    (process,) = trace.processes.to_pylist()
    assert (process["pid"], process["end_state"]) == (target.pid, "left")
    assert process["python"].startswith(version + ".")
    threads = {row["name"]: row["thread_id"] for row in trace.locations.to_arrow().to_pylist()}
    assert threads == {"MainThread": target.pid, **json.loads(target.printed)}
    assert trace.info.location_count == len(threads)

    rows = samples_of(trace)
    of = {name: [row for row in rows if row["thread"] == f"the {name} thread"] for name in ("deep", "generators")}
    text = [line.strip() for line in program.read_text(encoding="utf-8").splitlines()]
    lines = {row["line"] for row in of["generators"] if row["state"] == "python" and row["stack"][-1] == "spin"}
    loop = text.index("x = (x * 3 + i) % 1000003  # the line that runs") + 1
    assert loop in lines
    assert lines <= set(range(loop - 5, loop + 1))
    deep = Counter(row["stack"].count("recurse") for row in of["deep"])
    assert deep.most_common(1)[0][0] == 2001
    assert max(row["stack"].count("chain") for row in of["generators"]) == 101
    coroutines = [row["stack"] for row in rows if row["thread"] == "the coroutines thread" and "spin" in row["stack"]]
    assert coroutines
    assert all(stack[-3:] == ["outer", "inner", "spin"] for stack in coroutines)
    blocked = [row for row in rows if row["thread"] == "the blocked thread"]
    with_line = text.index("with lock:") + 1
    assert {(row["state"], row["stack"][-1], row["line"]) for row in blocked} == {("lock", "blocked", with_line)}
    native = [row for row in rows if row["thread"] == "the compressing thread"]
    in_c = sum(row["cpu_ns"] for row in native if row["state"] == "native")
    assert in_c > 0.8 * sum(row["cpu_ns"] for row in native)
    # Three threads want the GIL, and one has it.
    table = {row["name"]: row for row in trace.samples(by="thread").to_arrow().to_pylist()}
    assert table["the deep thread"]["gil_ns"] > table["the deep thread"]["python_ns"]


@contextmanager
def sampling(folder: Path, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """`strobe sample WORDS` into out.strobe, once it has begun."""
    command = [STROBE, "sample", "-o", "out", *words]
    with subprocess.Popen(command, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        while not list((folder / "out.strobe").glob("*.blocks")):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        yield process


def test_shares_of_functions_are_those_of_their_cpu_time(tmp_path: Path) -> None:
    """Until the program ended: what is sampled is 1.5 s of CPU time, however long they take."""
    program = Workshop(tmp_path).write("shares.py", SHARES)
    with (
        running(sys.executable, str(program), folder=tmp_path) as target,
        sampling(tmp_path, "--rate", "500", str(target.pid)) as sampler,
    ):
        target.end()
        _, errors = sampler.communicate(timeout=TIMEOUT_S)
    assert sampler.returncode == 0
    assert f"process {target.pid} ended" in errors
    assert "python-bound" in errors
    trace = strobe.open(tmp_path / "out.strobe")
    assert trace.info.ended == "ended"
    rows = {row["name"]: row["total_ns"] for row in trace.samples(by="function").to_arrow().to_pylist()}
    assert rows["<module>"] == pytest.approx(1.5e9, rel=0.1)  # its CPU time
    for name, share in {"sixty": 0.6, "thirty": 0.3, "ten": 0.1}.items():
        assert rows[name] / rows["spin"] == pytest.approx(share, abs=0.1)


def test_what_cannot_be_sampled_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        refused = {
            "there is no process 2147483646": ("2147483646",),
            f"process {other.pid} cannot be sampled: sleep is not CPython 3": (str(other.pid),),
            "cannot take 1000000 samples per second": (str(os.getpid()), "--rate", "1000000"),
        }
        for sentence, words in refused.items():
            done = sample(tmp_path, *words)
            assert sentence in done.stderr
            assert "Traceback" not in done.stderr
            assert done.returncode in (2, 125)
        other.kill()
    assert not list(tmp_path.iterdir())  # no trace without samples


@pytest.mark.parametrize("version", ["3.13", "3.15"])
def test_an_interpreter_with_other_offsets_is_refused(tmp_path: Path, version: str) -> None:
    """As a debug build or another release would publish them: that of interpreter_frame.previous."""
    program = Workshop(tmp_path).write(
        "other.py",
        """
        import ctypes, struct
        runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
        words = (ctypes.c_uint64 * 64).from_address(runtime)
        # The frame's offsets follow those of a thread: size, previous, executable, instr_ptr, ...
        frame = next(i for i in range(20, 64) if words[i] == 8 and words[i + 1] == 0 and words[i + 2] == 56)
        words[frame] += 16
        print("ready", frame * 8, flush=True)
        input()
        """,
    )
    with running(interpreter(version), str(program), folder=tmp_path) as target:
        done = sample(tmp_path, str(target.pid), "--for", "1s")
        target.end()
    assert re.search(rf"runs a build of Python {version}\S+ that strobe does not know", done.stderr)
    assert "its interpreter_frame.previous is 24 and not 8" in done.stderr
    assert done.returncode == 125


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root, to become another user")
def test_a_process_of_another_user_is_refused_with_the_reason(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"], user=65534) as other:
        done = sample(tmp_path, str(other.pid), prefix=("setpriv", "--bounding-set=-sys_ptrace"))
        other.kill()
    assert f"process {other.pid} may not be read" in done.stderr
    assert done.returncode == 125


def test_a_program_that_becomes_another_one_is_told(tmp_path: Path) -> None:
    program = Workshop(tmp_path).write("becomes.py", SPINS + "    import os; os.execvp('sleep', ['sleep', '60'])\n")
    with (
        running(sys.executable, str(program), folder=tmp_path) as target,
        sampling(tmp_path, str(target.pid)) as sampler,
    ):
        time.sleep(0.5)  # of samples
        print(file=target.process.stdin, flush=True)
        _, errors = sampler.communicate(timeout=TIMEOUT_S)
    assert f"process {target.pid} became sleep by an exec, which was not sampled" in errors
    assert strobe.open(tmp_path / "out.strobe").samples().column("samples")


def test_ranks_of_a_job_and_their_children_are_one_trace(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    spins = workshop.write("spins.py", SPINS)
    parent = workshop.write(
        "parent.py", f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, {str(spins)!r}]))"
    )
    ranks = [{"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": "a"} for rank in (0, 1)]
    with (
        running(sys.executable, str(parent), folder=tmp_path, env=ranks[0]) as first,
        running(sys.executable, str(spins), folder=tmp_path, env=ranks[1]) as second,
    ):
        done = sample(tmp_path, str(second.pid), str(first.pid), "--children", "--for", "1.5s")
        first.end(), second.end()
    assert done.returncode == 0, done.stderr
    rows = strobe.open(tmp_path / "out.strobe").processes.to_pylist()
    assert {(row["pid"], row["rank"]) for row in rows if row["main"]} == {(first.pid, 0), (second.pid, 1)}
    assert len(rows) == 3


def test_a_job_is_sampled_by_its_command_line_with_ranks_that_begin_later(tmp_path: Path) -> None:
    """A shell starts two ranks, the second one after sampling has begun; each forks a helper with the same words."""
    workshop = Workshop(tmp_path)
    rank = workshop.write(
        "job_of_two.py",
        """
        import os, time
        end = time.time() + 2.5
        child = os.fork()
        while time.time() < end:
            pass
        if child:
            os.wait()
        """,
    )
    variables = "OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=a OMPI_COMM_WORLD_RANK="
    start = f"{variables}{{}} {sys.executable} {rank}"
    script = workshop.write("job_of_two.sh", f"{start.format(0)} & while ! [ -e go ]; do sleep 0.05; done; ")
    script.write_text(script.read_text().strip() + f" {start.format(1)} & wait\n")
    with subprocess.Popen(["sh", str(script)], cwd=tmp_path, env=environment(None)) as launcher:
        while not subprocess.run(["pgrep", "-f", f"^{sys.executable} {rank}"], stdout=subprocess.PIPE).stdout:
            time.sleep(0.02)
        with sampling(tmp_path, "--job", "job_of_two") as sampler:
            (tmp_path / "go").touch()
            _, errors = sampler.communicate(timeout=TIMEOUT_S)
        assert launcher.wait() == 0
    assert sampler.returncode == 0, errors
    # The shell matches, too, and is named as what was not sampled.
    assert re.search(rf"process {launcher.pid} cannot be sampled: \w+ is not CPython 3", errors)
    rows = strobe.open(tmp_path / "out.strobe").processes.to_pylist()
    assert sorted(row["rank"] for row in rows if row["main"]) == [0, 1]
    assert [row["rank"] for row in rows if not row["main"]] == [None, None]


NATIVE = """
    #include <pthread.h>
    #include <stdio.h>
    #include <sys/epoll.h>
    #include <time.h>

    static double used(void) {
      struct timespec t;
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
      return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
    }
    volatile double sink;
    __attribute__((noinline)) void spin(double ms) {
      double end = used() + ms;
      while (used() < end)
        for (int i = 0; i < 20000; i++) sink = sink * 1.5 + i;
    }
    __attribute__((noinline)) void two_thirds(void) { spin(8); __asm__(""); }
    __attribute__((noinline)) void one_third(void) { spin(4); __asm__(""); }
    static int failed;
    __attribute__((noinline)) void* waits(void* nothing) {
      struct epoll_event event;
      int set = epoll_create1(0);
      for (;;) failed |= epoll_wait(set, &event, 1, 300) < 0;  // EINTR would be of whoever stopped it
    }
    int main(void) {
      pthread_t thread;
      pthread_create(&thread, NULL, waits, NULL);
      puts("ready");
      fflush(stdout);
      while (used() < 1200) {
        two_thirds();
        one_third();
      }
      printf("failed: %d\\n", failed);
      return 7;
    }
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
def test_native_functions_of_a_process_without_python(tmp_path: Path) -> None:
    """Built as most libraries are: optimised, without frame pointers. It notices nothing."""
    source = Workshop(tmp_path).write("native.c", NATIVE)
    subprocess.run(["cc", "-O2", "-g", "-pthread", str(source), "-o", str(tmp_path / "native")], check=True)
    with (
        running(str(tmp_path / "native"), folder=tmp_path) as target,
        sampling(tmp_path, "--native", "--rate", "300", str(target.pid)) as sampler,
    ):
        assert target.end() == "failed: 0\n"
        assert target.process.returncode == 7
        _, errors = sampler.communicate(timeout=TIMEOUT_S)
        assert sampler.returncode == 0, errors
    trace = strobe.open(tmp_path / "out.strobe")
    rows = {row["name"]: row for row in trace.samples(by="function").to_arrow().to_pylist()}
    whole = rows["main"]["total_ns"]
    assert whole == pytest.approx(1.2e9, rel=0.15)
    assert rows["two_thirds"]["total_ns"] / whole == pytest.approx(2 / 3, abs=0.1)
    assert rows["one_third"]["total_ns"] / whole == pytest.approx(1 / 3, abs=0.1)
    waiting = [row for row in samples_of(trace) if row["state"] == "socket"]
    assert any("waits" in row["stack"] for row in waiting)


def test_native_functions_lie_below_those_of_python(tmp_path: Path) -> None:
    program = Workshop(tmp_path).write(
        "packs.py",
        """
        import zlib
        data = bytes(range(256)) * 40000
        print("ready", flush=True)

        def pack():
            zlib.compress(data, 9)

        while True:
            pack()
        """,
    )
    with running(sys.executable, str(program), folder=tmp_path) as target:
        done = sample(tmp_path, "--native", str(target.pid), "--for", "1.5s")
    assert done.returncode == 0, done.stderr
    trace = strobe.open(tmp_path / "out.strobe")
    stacks = [row["call_stack"].split("\n") for row in trace.side_table("samples").to_pylist() if row["call_stack"]]
    inside = [stack for stack in stacks if any("deflate" in line for line in stack)]
    assert len(inside) > 0.7 * len(stacks)
    # Behind `pack` come functions of C only, and none of the interpreter's loop.
    assert all(stack[1].startswith("pack (") for stack in inside)
    assert not any(".py:" in line or "_PyEval_Eval" in line for stack in inside for line in stack[2:])
    damaged = [row["value"] for row in trace.quality.to_pylist() if row["what"] == "chunks_damaged"]
    assert not any(damaged)


def test_a_strobe_that_is_killed_leaves_what_it_has(tmp_path: Path) -> None:
    program = Workshop(tmp_path).write("spins.py", SPINS)
    with (
        running(sys.executable, str(program), folder=tmp_path) as target,
        sampling(tmp_path, str(target.pid)) as sampler,
    ):
        blocks = tmp_path / "out.strobe" / f"process-{target.pid}.blocks"
        begin = time.monotonic()
        while not blocks.stat().st_size:
            assert time.monotonic() < begin + TIMEOUT_S
            time.sleep(0.05)
        sampler.kill()
        sampler.communicate()
    trace = strobe.open(tmp_path / "out.strobe")
    assert trace.locations.column("name") == ["MainThread", "Thread-1 (<lambda>)"]
    assert "<module>" in trace.samples(by="function").column("name")
