"""Programs that use what the recorder uses too: profile hooks, tracers, at-exit and at-fork and signal handlers."""

import re
import sys

import pytest

import strobe
from tests.record.workshop import Workshop, quality_of, spans_of

pytestmark = pytest.mark.every_python

GUESTS = {
    "sys.setprofile": """
        events = []
        def hook(frame, event, argument):
            events.append((event, frame.f_code.co_name))
        sys.setprofile(hook)
        work(1)
        sys.setprofile(None)
        work(2)
        print(events)""",
    "sys.settrace": """
        lines = []
        def tracer(frame, event, argument):
            lines.append((event, frame.f_code.co_name, frame.f_lineno))
            return tracer
        sys.settrace(tracer)
        work(1)
        sys.settrace(None)
        print(lines)""",
    "threading.setprofile": """
        import threading
        events = []
        threading.setprofile(lambda frame, event, argument: events.append((event, frame.f_code.co_name)))
        thread = threading.Thread(target=work, args=(1,))
        thread.start()
        thread.join()
        threading.setprofile(None)
        print(events)""",
    "cProfile": """
        import cProfile, pstats
        profile = cProfile.Profile()
        profile.enable()
        for n in range(10):
            work(n)
        profile.disable()
        print(sorted((key[2], value[:2]) for key, value in pstats.Stats(profile).stats.items()))""",
    "cProfile twice": """
        import cProfile
        for _ in range(2):
            with cProfile.Profile() as profile:
                work(1)
        print(len(profile.getstats()))""",
    "atexit and at-fork handlers": """
        import atexit
        atexit.register(print, "at exit")
        os.register_at_fork(before=lambda: print("before", flush=True), after_in_parent=lambda: print("parent"))
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)""",
    "interval timer": """
        import signal, time
        count = 0
        def tick(number, frame):
            global count
            count += 1
        signal.signal(signal.SIGALRM, tick)
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            work(1)
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(count > 5)""",
    "profiling timer": """
        import signal
        count = 0
        def tick(number, frame):
            global count
            count += 1
        signal.signal(signal.SIGPROF, tick)
        signal.setitimer(signal.ITIMER_PROF, 0.005, 0.005)
        while count < 5:
            work(1)
        signal.setitimer(signal.ITIMER_PROF, 0)
        print("ticked")""",
    "waiting for any child": """
        import subprocess
        child = subprocess.Popen(["true"])
        print(os.waitpid(-1, 0)[0] == child.pid)
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError as error:
            print(error)""",
    "own child handler": """
        import signal, subprocess
        seen = []
        signal.signal(signal.SIGCHLD, lambda number, frame: seen.append(number))
        subprocess.run(["true"])
        print(seen)""",
    "blocked signals": """
        import signal
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        os.kill(os.getpid(), signal.SIGUSR1)
        work(1)
        print(signal.sigpending())""",
    "file size limit": """
        import resource, sys
        sys.dont_write_bytecode = True  # a module would be left cut off
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        for n in range(200_000):
            work(n)
        print("done")""",
    "descriptor limit": """
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))
        for n in range(200_000):
            work(n)
        print("done")""",
    "object tracing": """
        import tracemalloc
        tracemalloc.start()
        for n in range(100_000):
            work(n)
        print(tracemalloc.get_traced_memory()[0] < 1_000_000)""",
    "code objects that come and go": """
        total = 0
        for n in range(20_000):
            namespace = {}
            exec(f"def made(): return {n % 7}", namespace)
            total += namespace["made"]()
        print(total)""",
    "functions defined in a loop": """
        def make(n):
            def inner():
                return n
            return inner
        print(sum(make(n)() for n in range(50_000)))""",
    "exception storm": """
        def fail(n):
            if n:
                fail(n - 1)
            raise KeyError(n)
        caught = 0
        for _ in range(2000):
            try:
                fail(20)
            except KeyError:
                caught += 1
        print(caught)""",
    "generators left open": """
        def numbers():
            yield from range(10)
        kept = [numbers() for _ in range(1000)]
        print(sum(next(generator) for generator in kept))""",
    "sub-interpreter free threads": """
        import threading
        lock, total = threading.Lock(), 0
        def add():
            global total
            for n in range(20_000):
                with lock:
                    total += work(n) - n
        threads = [threading.Thread(target=add) for _ in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        print(total)""",
    "low stack": """
        import threading
        threading.stack_size(64 * 1024)
        def deep(n):
            return n if n == 0 else deep(n - 1)
        thread = threading.Thread(target=lambda: print(deep(100)))
        thread.start()
        thread.join()""",
    "coverage": """
        import coverage
        measured = coverage.Coverage(data_file=None)
        measured.start()
        work(1)
        measured.stop()
        print(sorted(measured.get_data().lines(os.path.abspath(__file__))))""",
    "coverage by monitoring": """
        os.environ["COVERAGE_CORE"] = "sysmon" if sys.version_info >= (3, 12) else "ctrace"
        import coverage
        measured = coverage.Coverage(data_file=None, branch=False)
        measured.start()
        work(1)
        measured.stop()
        print(sorted(measured.get_data().lines(os.path.abspath(__file__))))""",
    "debugger": """
        import io, pdb
        said = io.StringIO()
        debugger = pdb.Pdb(stdin=io.StringIO("step\\nstep\\nargs\\nreturn\\ncontinue\\n"), stdout=said, nosigint=True)
        debugger.set_trace()
        work(1)
        print(said.getvalue())""",
    "profilers that save and restore": """
        before = sys.getprofile()
        sys.setprofile(lambda *_: None)
        work(1)
        sys.setprofile(before)
        print(before, sys.gettrace())
        print(work(2))""",
    "monitoring": """
        if sys.version_info >= (3, 12):
            mine = sys.monitoring
            print([mine.get_tool(n) for n in (mine.DEBUGGER_ID, mine.COVERAGE_ID, mine.PROFILER_ID, mine.OPTIMIZER_ID)])
            mine.use_tool_id(mine.PROFILER_ID, "guest")
            seen = []
            start = mine.events.PY_START
            mine.register_callback(mine.PROFILER_ID, start, lambda code, offset: seen.append(code.co_name))
            mine.set_events(mine.PROFILER_ID, start)
            work(1)
            mine.set_events(mine.PROFILER_ID, 0)
            mine.free_tool_id(mine.PROFILER_ID)
            print(seen)""",
}
# The recorder may stop then, and say so in one sentence.
TAKES_AWAY_RESOURCES = {"file size limit", "descriptor limit"}
HEADER = """
import os, sys
def work(n):
    return helper(n) + 1
def helper(n):
    return n
"""


# On 3.11 C functions are seen from the place that profilers of the program want for themselves.
USE_PROFILE_HOOKS = ("sys.setprofile", "threading.setprofile", "cProfile", "profilers that save and restore")


@pytest.mark.parametrize("guest", USE_PROFILE_HOOKS)
def test_recording_of_c_functions_gives_way_to_profilers(workshop: Workshop, guest: str) -> None:
    body = "\n".join(line.removeprefix("        ") for line in GUESTS[guest].splitlines())
    workshop.write("program.py", HEADER + body + "\ndef after(): len([])\nfor n in range(7): after()")
    recorded, plain = workshop.recorded("--trace", "+c_calls", "program.py"), workshop.plain("program.py")
    # The interpreter tells a profiler of the end of the very call that put it in, as C calls are watched already.
    assert (re.sub(r"^\[\('c_return', '[\w<>]+'\), ", "[", recorded.stdout), *recorded.visible[1:]) == plain.visible
    assert (spans_of(workshop.trace, "after"), spans_of(workshop.trace, "len")) == (7, 7)
    assert quality_of(workshop.trace, "leaves_unmatched") == 0


@pytest.mark.parametrize("guest", GUESTS)
def test_a_program_that_measures_or_handles_itself_gets_its_own_result(workshop: Workshop, guest: str) -> None:
    if guest == "debugger" and sys.version_info >= (3, 13):
        pytest.xfail("pdb.set_trace() stops a line later beside another tool of sys.monitoring")
    body = "\n".join(line.removeprefix("        ") for line in GUESTS[guest].splitlines())
    workshop.write("program.py", HEADER + body)
    recorded, plain = workshop.recorded("program.py"), workshop.plain("program.py")
    assert (recorded.stdout, recorded.returncode) == (plain.stdout, plain.returncode)
    said = recorded.stderr.removeprefix(plain.stderr)
    if guest in TAKES_AWAY_RESOURCES:
        assert [line.partition(":")[0] for line in said.splitlines()] in ([], ["strobe"])
    else:
        assert said == ""
    strobe.open(workshop.trace)


def test_recording_goes_on_after_a_profiler_of_the_program(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        HEADER
        + "import cProfile\nwith cProfile.Profile():\n    work(2)\ndef after(): pass\nfor n in range(7): after()",
    )
    workshop.recorded("program.py")
    assert spans_of(workshop.trace, "after") == 7


def test_code_objects_at_the_same_address_are_not_mistaken_for_each_other(workshop: Workshop) -> None:
    """A recorder that knows code by its address alone gives a new function the name of a dead one."""
    workshop.write(
        "program.py",
        """
        for n in range(300):
            namespace = {}
            exec(compile(f"def made_{n}(): pass", "made.py", "exec"), namespace)
            namespace[f"made_{n}"]()
            del namespace
        """,
    )
    workshop.recorded("program.py")
    rows = strobe.open(workshop.trace).sql(
        """select regions.name as name, count(*) as n from spans join regions on spans.region = regions.region
           where regions.name like '%made_%' group by all"""
    )
    assert {row["name"].rpartition(".")[2]: row["n"] for row in rows.to_pylist()} == {
        f"made_{n}": 1 for n in range(300)
    }


def test_the_kill_switch_leaves_the_program_alone(workshop: Workshop) -> None:
    workshop.write("program.py", "import sys; print('hello', [m for m in sys.modules if m.startswith('strobe')])")
    outcome = workshop.recorded("program.py", env={"STROBE_DISABLE": "1"})
    assert (outcome.stdout, outcome.returncode) == ("hello []\n", 0)
    assert not list(workshop.folder.glob("*.strobe"))


def test_the_recorder_imports_no_package_of_others(workshop: Workshop) -> None:
    workshop.write("program.py", "pass")
    plain = workshop.plain("-X", "importtime", "program.py")
    recorded = workshop.recorded("--", sys.executable, "-X", "importtime", "program.py")

    def imported(text: str) -> set[str]:
        lines = [line for line in text.splitlines() if line.startswith("import time:")]
        return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}

    added = imported(recorded.stderr) - imported(plain.stderr)
    foreign = {name for name in added if name not in sys.stdlib_module_names and not name.startswith("strobe")}
    assert "strobe" in added, "the recorder was not imported at all"
    assert foreign <= {"sitecustomize"}


SUB_INTERPRETERS = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
for isolated in (True, False):
    if sys.version_info >= (3, 13):
        made = interpreters.create("isolated" if isolated else "legacy")
    else:
        made = interpreters.create(isolated=isolated)
    interpreters.run_string(made, "def inside(n): return n and inside(n - 1)\\nprint(inside(3), flush=True)")
    interpreters.destroy(made)
def after(): pass
for n in range(7): after()
"""


def test_recording_goes_on_after_a_sub_interpreter_of_the_program(workshop: Workshop) -> None:
    workshop.write("program.py", SUB_INTERPRETERS)
    assert workshop.recorded("program.py").visible == workshop.plain("program.py").visible == ("0\n0\n", "", 0)
    assert spans_of(workshop.trace, "after") == 7
    said = [row["text"] for row in strobe.open(workshop.trace).quality.to_pylist() if row["what"] == "unrecorded"]
    assert len(said) == 1
    assert "the process is recorded already" in said[0]
