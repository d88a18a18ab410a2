"""`strobe run --sample`: what Python threads were doing, against a program that knows its own times."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

import strobe
from strobe.formats.profiles.collapsed import FORMAT
from tests.record.workshop import Workshop

pytestmark = pytest.mark.every_python

# Each thread works until the kernel's clock of its own CPU time says so: how busy the machine is does not matter.
PROGRAM = """
    import json, threading, time, zlib

    data = bytes(range(256)) * 4000

    def python_part(seconds):
        end = time.thread_time() + seconds
        x = 0
        while time.thread_time() < end:
            for i in range(20000):
                x = (x * 3 + i) % 1000003

    def native_part(seconds):
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            zlib.compress(data, 6)

    def waiting_part(seconds):
        time.sleep(seconds)

    def work(python, native, waiting):
        for _ in range(2):
            python_part(python / 2)
            native_part(native / 2)
            waiting_part(waiting / 2)

    other = threading.Thread(target=work, args=(0.1, 0.3, 0.4), name="other")
    other.start()
    work(0.4, 0.2, 0.2)
    other.join()
    print(json.dumps({"main thread": [0.4, 0.2], "other": [0.1, 0.3]}))
"""


class Run(NamedTuple):
    """The trace of the program, and what it said about itself: seconds in Python and in C code by thread."""

    trace: strobe.Trace
    folder: Path
    truth: dict[str, list[float]]


def listed(table: Any) -> list[dict[str, Any]]:
    """The rows of a table, of whatever types."""
    return cast("list[dict[str, Any]]", table.to_pylist())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run for all tests here."""
    workshop = Workshop(tmp_path_factory.mktemp("samples"))
    program = workshop.write("split.py", PROGRAM)
    outcome = workshop.recorded("--preset", "sampling", str(program))
    assert outcome.returncode == 0, outcome.stderr
    return Run(strobe.open(outcome.trace), workshop.folder, json.loads(outcome.stdout))


def test_python_native_and_waiting_are_what_the_program_measured(run: Run) -> None:
    """CPU time of each thread, by state of its samples; 20 % or 60 ms of sampling error."""
    rows = listed(run.trace.side_table("samples"))
    names = cast("list[str]", run.trace.locations.column("name"))
    cpu, waited = Counter[tuple[object, object]](), Counter[object]()
    for row in rows:
        cpu[names[row["location"]], row["state"]] += row["cpu_ns"]
        if row["state"] == "sleep" and "waiting_part" in row["call_stack"]:
            waited[names[row["location"]]] += row["period_ns"]
    for thread, (python, native) in run.truth.items():
        assert cpu[thread, "python"] / 1e9 == pytest.approx(python, rel=0.2, abs=0.06)
        assert cpu[thread, "native"] / 1e9 == pytest.approx(native, rel=0.2, abs=0.06)
    # A sleep lasts as long as it was asked for, or longer.
    assert waited["main thread"] > 0.8 * 0.2e9
    assert waited["other"] > 0.8 * 0.4e9


def test_what_a_thread_waits_for_and_the_collector_are_told_apart(workshop: Workshop) -> None:
    """Each function waits for as long as it writes down; `collecting` takes the CPU time of the collector."""
    program = workshop.write(
        "states.py",
        """
        import gc, json, select, socket, threading, time

        held, inside = threading.Lock(), threading.Event()

        def hold():
            with held:
                inside.set()
                time.sleep(0.4)

        def lock():
            threading.Thread(target=hold).start()
            inside.wait()
            with held:
                pass

        def sockets():
            near, far = socket.socketpair()
            threading.Timer(0.3, far.send, [b"1"]).start()
            near.recv(1)
            select.select([near], [], [], 0.2)

        def collect():
            for _ in range(30):
                gc.collect()

        def spin(until):
            while time.monotonic() < until:
                pass

        def gil():
            until = time.monotonic() + 0.6
            other = threading.Thread(target=spin, args=(until,))
            other.start()
            spin(until)
            other.join()

        garbage = [[i, [i]] for i in range(200_000)]
        took = {}
        for each in (lock, sockets, collect, gil):
            clock = time.thread_time if each is collect else time.monotonic
            begin = clock()
            each()
            took[each.__name__] = clock() - begin
        print(json.dumps(took))
        """,
    )
    recorded = workshop.recorded("--sample", "500", str(program))
    assert recorded.returncode == 0
    took = json.loads(recorded.stdout)
    trace = strobe.open(recorded.trace)
    main = cast("list[str]", trace.locations.column("name")).index("main thread")
    seen = Counter[tuple[str, object]]()
    for row in listed(trace.side_table("samples")):
        for function in took:
            if row["location"] == main and f"{function} (" in (row["call_stack"] or ""):
                seen[function, row["state"]] += row["cpu_ns" if row["state"] == "collecting" else "period_ns"]
    share = {key: ns / 1e9 / took[key[0]] for key, ns in seen.items()}
    assert share["lock", "lock"] > 0.8
    assert share["sockets", "socket"] > 0.8
    assert share["collect", "collecting"] == pytest.approx(1, abs=0.25)
    assert share["gil", "gil"] > 0.1


def test_who_waits_for_threads_of_native_code_that_compute_is_told_so(workshop: Workshop) -> None:
    """A thread that knows no Python runs `strlen` over much memory, as a pool of XLA or Arrow would compute."""
    program = workshop.write(
        "native_thread.py",
        """
        import ctypes, threading, time

        library = ctypes.CDLL(None)
        library.pthread_create.argtypes = [ctypes.c_void_p] * 4
        library.pthread_join.argtypes = [ctypes.c_ulong, ctypes.c_void_p]
        text = ctypes.create_string_buffer(b"x" * 200_000_000)
        started = threading.Event()

        def computed():
            thread = ctypes.c_ulong()
            address = ctypes.cast(library.strlen, ctypes.c_void_p)
            library.pthread_create(ctypes.byref(thread), None, address, ctypes.addressof(text))
            library.pthread_join(thread, None)

        def held():
            started.wait(1.0)

        begin = time.monotonic()
        while time.monotonic() < begin + 2:
            computed()
        print(time.process_time() / (time.monotonic() - begin))
        held()
        """,
    )
    # A native thread that waits for a core computes nothing meanwhile: it has to have one nearly all of the time.
    for _ in range(5):
        recorded = workshop.recorded("--sample", "200", str(program))
        assert recorded.returncode == 0
        if float(recorded.stdout) >= 0.9:
            break
    else:
        pytest.skip("this machine is too busy: in five tries a native thread had no core for nearly all of the time")
    states: dict[str, Counter[str]] = {"computed": Counter(), "held": Counter()}
    for row in listed(strobe.open(recorded.trace).side_table("samples")):
        for function, seen in states.items():
            if f"{function} (" in (row["call_stack"] or ""):
                seen[str(row["state"])] += row["period_ns"]
    assert states["computed"]["threads"] > 0.7 * states["computed"].total()
    assert states["held"]["lock"] > 0.9 * states["held"].total()


def test_a_thread_without_a_frame_of_python_is_in_c_code_also_where_it_always_waits_for_a_processor(
    workshop: Workshop,
) -> None:
    """The sampler takes the only processor from it whenever it looks. There it read a frame that was not there."""
    program = workshop.write(
        "bare.py",
        """
        import _thread, os, time, zlib
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        data = os.urandom(1 << 20) * 64
        for _ in range(4):
            _thread.start_new_thread(zlib.compress, (data, 6))
        time.sleep(0.01)
        begin = time.process_time()
        while time.process_time() - begin < 0.6:
            time.sleep(0.01)
        os._exit(0)
        """,
    )
    outcome = workshop.recorded("--preset", "sampling", str(program))
    assert outcome.returncode == 0, outcome.stderr
    cpu: Counter[object] = Counter()
    for row in listed(strobe.open(outcome.trace).side_table("samples")):
        if not row["call_stack"]:
            cpu[row["state"]] += row["cpu_ns"]
    assert cpu["native"] > 0.9 * cpu.total() > 0.2e9


@pytest.mark.parametrize(("options", "per_second"), [((), 100), (("--trace=-samples",), 0)])
def test_by_default_a_few_samples_are_taken_beside_the_calls(
    workshop: Workshop, options: tuple[str, ...], per_second: int
) -> None:
    trace = strobe.open(workshop.recorded(*options, str(workshop.write("split.py", PROGRAM))).trace)
    # Two threads; those that wait get rows of their own.
    seconds, count = trace.info.duration_ns / 1e9, len(trace.side_table("samples"))
    assert per_second / 10 * seconds <= count <= 4 * per_second * seconds
    assert trace.span_count > 0


def test_functions_and_lines_are_the_ones_that_ran(run: Run) -> None:
    """python_part is Python, native_part is C; the line of the latter is that of the call."""
    by_name = {row["name"]: row for row in listed(run.trace.samples())}
    python, native = by_name["python_part"], by_name["native_part"]
    assert python["python_ns"] > 5 * python["native_ns"]
    assert native["native_ns"] > 5 * native["python_ns"]
    assert by_name["work"]["total_ns"] >= python["total_ns"]
    assert python["file"].endswith("split.py")
    lines = {(row["name"], row["line"]): row["native_ns"] for row in listed(run.trace.samples(by="line"))}
    code = (run.folder / "split.py").read_text().split("\n")
    name, line = max(lines, key=lambda key: lines[key])
    assert name == "native_part"
    assert "zlib.compress" in code[line - 1]


def test_stacks_reach_from_the_bottom_to_the_top(run: Run) -> None:
    """Outermost first; no frame of the recorder is in them, and its thread is no location."""
    stacks = {row["call_stack"] for row in listed(run.trace.side_table("samples")) if row["call_stack"]}
    of_main = [stack.split("\n") for stack in stacks if "<module>" in stack]
    assert any([frame.split(" (")[0] for frame in stack] == ["<module>", "work", "python_part"] for stack in of_main)
    assert not any("python_part" in stack and "/strobe/" in stack for stack in stacks)
    assert not any("strobe" in str(name) for name in run.trace.locations.column("name"))


def test_callers_that_take_turns_in_the_same_place_are_told_apart(workshop: Workshop) -> None:
    """The frame of `spin` lies at the same address and has the same code, whoever of the two called it."""
    program = """
        import time

        def spin():
            end = time.thread_time() + 0.003
            while time.thread_time() < end:
                pass

        def one():
            spin()

        def two():
            spin()

        def turn(caller):
            caller()

        for _ in range(80):
            turn(one)
            turn(two)
    """
    outcome = workshop.recorded("--preset", "sampling", str(workshop.write("turns.py", program)))
    assert outcome.returncode == 0, outcome.stderr
    ran = Counter[tuple[str, ...]]()
    for row in listed(strobe.open(outcome.trace).side_table("samples")):
        names = tuple(frame.split(" (")[0] for frame in (row["call_stack"] or "").split("\n"))
        if "spin" in names:
            ran[names] += row["cpu_ns"]
    of_one, of_two = (("<module>", "turn", caller, "spin") for caller in ("one", "two"))
    assert set(ran) == {of_one, of_two}
    assert 0.5 < ran[of_one] / ran[of_two] < 2  # each 80 times 3 ms of CPU time


def test_samples_go_to_profilers_of_stacks(run: Run, tmp_path: Path) -> None:
    """Where no Python calls are recorded, collapsed stacks are those of the samples that ran."""
    assert FORMAT.write is not None
    FORMAT.write(run.trace, tmp_path / "out.collapsed")
    total = Counter[str]()
    for line in (tmp_path / "out.collapsed").read_text().splitlines():
        stack, _, weight = line.rpartition(" ")
        python = [frame for frame in stack.split(";") if ".py" in frame]  # C functions may lie below
        total[python[-1].split(" (")[0] if python else ""] += int(weight)
    assert total["python_part"] > 0.5e9 * 0.7
    assert total["native_part"] > 0.5e9 * 0.7
    assert not total["waiting_part"] > 0.1e9


def test_a_program_that_closes_every_file_and_forks_is_left_alone(workshop: Workshop) -> None:
    """Samples of a forked child are its own; a closed file ends sampling, and nothing else."""
    program = workshop.write(
        "forks.py",
        """
        import os, sys, time

        def spin(seconds):
            end = time.thread_time() + seconds
            while time.thread_time() < end:
                pass

        spin(0.1)
        child = os.fork()
        spin(0.4)
        if child:
            assert os.waitpid(child, 0)[1] == 0
            os.closerange(3, 4096)
            mine = open("mine", "w")
            spin(0.1)
            mine.write("only this")
            mine.close()
            print(open("mine").read())
        """,
    )
    plain, recorded = workshop.plain(str(program)), workshop.recorded("--sample", "1000", str(program))
    assert recorded.visible == plain.visible
    trace = strobe.open(recorded.trace)
    of_process = Counter(
        cast("list[int]", trace.locations.column("process"))[row["location"]]
        for row in listed(trace.side_table("samples"))
        if row["call_stack"] and "spin" in row["call_stack"]
    )
    assert len(of_process) == 2
    assert min(of_process.values()) > 10


def cpu_by_process(trace: strobe.Trace, function: str) -> dict[int, float]:
    """Seconds of CPU time of samples with this function in their stack, by process."""
    of_location = cast("list[int]", trace.locations.column("process"))
    found = Counter[int]()
    for row in listed(trace.side_table("samples")):
        if f"{function} (" in (row["call_stack"] or ""):
            found[of_location[row["location"]]] += row["cpu_ns"]
    return {process: ns / 1e9 for process, ns in found.items()}


def test_parent_and_child_are_sampled_while_their_main_threads_stay_in_c_code(workshop: Workshop) -> None:
    program = workshop.write(
        "threads.py",
        """
        import _thread, os, time

        def spin(seconds):
            end = time.thread_time() + seconds
            while time.thread_time() < end:
                pass

        def in_parent():
            spin(0.4)

        def in_child(done):
            spin(0.4)
            done.release()

        def forks(done):
            child = os.fork()
            if child:
                in_parent()
                os.waitpid(child, 0)
                done.release()
                return
            in_c_until(in_child)
            os._exit(0)

        def in_c_until(function):
            done = _thread.allocate_lock()
            done.acquire()
            _thread.start_new_thread(function, (done,))
            done.acquire()

        in_c_until(forks)
        """,
    )
    recorded = workshop.recorded("--trace", "metrics", "--sample", "1000", str(program))
    assert (recorded.stdout, recorded.returncode) == ("", 0)
    trace = strobe.open(recorded.trace)
    parent, child = cpu_by_process(trace, "in_parent"), cpu_by_process(trace, "in_child")
    assert len(parent) == len(child) == 1
    assert parent.keys() != child.keys()
    assert min(*parent.values(), *child.values()) > 0.2


def test_the_time_around_a_fork_is_in_the_samples_after_it(workshop: Workshop) -> None:
    """Sampling pauses for each fork; with one every few milliseconds that is a good part of the time."""
    program = workshop.write(
        "forks.py",
        """
        import os, time

        def spin(seconds):
            end = time.thread_time() + seconds
            while time.thread_time() < end:
                pass

        def forks():
            for _ in range(100):
                spin(0.002)
                child = os.fork()
                if not child:
                    os._exit(0)
                spin(0.002)
                os.waitpid(child, 0)

        start = time.thread_time()
        forks()
        print(time.thread_time() - start)
        """,
    )
    recorded = workshop.recorded("--trace", "metrics", "--sample", "1000", str(program))
    assert recorded.returncode == 0
    assert sum(cpu_by_process(strobe.open(recorded.trace), "forks").values()) > 0.85 * float(recorded.stdout)


def test_forks_raise_no_warning_and_sampling_that_was_stopped_in_one_stays_stopped(workshop: Workshop) -> None:
    program = workshop.write(
        "forks.py",
        """
        import os, time, warnings
        import strobe
        warnings.simplefilter("always")  # of a fork in a process of several threads, from 3.12 on

        def slow():
            for _ in range(300):
                pass

        def fork():
            if os.fork():
                return os.wait()[1]
            time.sleep(0.001)
            os._exit(fork_once_more())

        def fork_once_more():
            if os.fork():
                return os.wait()[1]
            os._exit(0)

        def sampled(within_s=5):
            end = time.monotonic() + within_s
            while time.monotonic() < end:
                for task in os.listdir("/proc/self/task"):
                    with open(f"/proc/self/task/{task}/comm") as name:
                        if name.read().strip() == "strobe-samples":
                            return True
                time.sleep(0.001)
            return False

        os.register_at_fork(after_in_parent=slow)
        print([fork() for _ in range(10)], sampled())
        warnings.simplefilter("ignore")
        os.register_at_fork(after_in_parent=strobe.pause)
        fork()
        print(sampled(within_s=0.02))
        strobe.resume()
        print(sampled())
        """,
    )
    recorded = workshop.recorded("--trace", "metrics", "--sample", "1000", str(program))
    assert recorded.visible == (f"{[0] * 10} True\nFalse\nTrue\n", "", 0)


SHORT_CALLS = """
    import hashlib, time

    a, b, c, d = (bytes(100_000 + n) for n in range(4))

    def work():
        for n in range(200):
            hashlib.sha256(a)
            hashlib.sha256(b)
            hashlib.sha256(c)
            hashlib.sha256(d)

    end = time.thread_time() + 1.5
    while time.thread_time() < end:
        work()
"""


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="on one processor the sampler only sees a program that rests")
def test_native_code_is_seen_as_such_while_other_programs_have_the_processors(workshop: Workshop) -> None:
    """Where the sampler always took the program's own processor, it never saw it run, and guessed Python."""
    workshop.write("program.py", SHORT_CALLS)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range((os.cpu_count() or 1) - 1)]
    try:
        done = workshop.recorded("program.py")
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert done.returncode == 0, done.stderr
    ran = Counter[str]()
    with strobe.open(workshop.trace) as trace:
        for row in listed(trace.side_table("samples")):
            if "work (" in (row["call_stack"] or ""):
                ran[row["state"]] += row["cpu_ns"] or 0
    assert ran["native"] > 0.6 * ran.total(), ran


@pytest.mark.every_python
@pytest.mark.parametrize("package", ["", "import numpy\n"])
def test_what_the_interpreter_does_in_c_for_its_own_objects_is_python(workshop: Workshop, package: str) -> None:
    """Sorting a list, and looking for something in one: as in a loop of the program. Compression and NumPy are not."""
    code = f"""
import random, time, zlib
{package}
names = [str(n) for n in range(40_000)]
data = bytes(range(256)) * 2000
def sorts():
    return sorted(names, reverse=True)
def looks():
    return "nobody" in names
def packs():
    return zlib.compress(data, 6)
def adds():
    return big + big if numpy else None
numpy = globals().get("numpy")
big = numpy.arange(500_000.0) if numpy else None
for work in (sorts, looks, packs, *([adds] if numpy else [])):
    end = time.thread_time() + 0.4
    while time.thread_time() < end:
        work()
"""
    workshop.write("program.py", code)
    done = workshop.recorded("program.py")
    assert done.returncode == 0, done.stderr
    ran: dict[str, Counter[str]] = {}
    with strobe.open(workshop.trace) as trace:
        for row in listed(trace.side_table("samples")):
            python = [frame for frame in str(row["call_stack"]).split("\n") if ".py:" in frame]  # C functions lie below
            name = python[-1].partition(" (")[0] if python else ""
            ran.setdefault(name, Counter())[row["state"]] += row["cpu_ns"] or 0
    expected = {"sorts": "python", "looks": "python", "packs": "native"} | ({"adds": "native"} if package else {})
    shares = {name: ran[name][state] / ran[name].total() for name, state in expected.items()}
    assert all(share > 0.7 for share in shares.values()), ran
