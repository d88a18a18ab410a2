"""Processes that a program starts are recorded too, each as one process of the trace, however it was started."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import strobe
from strobe.errors import TraceError
from strobe.present.summary import summarise
from tests.record.workshop import Workshop, functions_of_processes, spans_of

pytestmark = pytest.mark.every_python

STARTERS = {
    "fork": """
        pid = os.fork()
        if pid == 0:
            child(1)
            os._exit(4)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))""",
    "fork in a thread": """
        def start():
            pid = os.fork()
            if pid == 0:
                child(1)
                os._exit(4)
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        thread = threading.Thread(target=start)
        thread.start()
        thread.join()""",
    "multiprocessing fork": "run(mp.get_context('fork'))",
    "multiprocessing spawn": "run(mp.get_context('spawn'))",
    "multiprocessing forkserver": "run(mp.get_context('forkserver'))",
    "pool": """
        with mp.get_context('fork').Pool(2) as pool:
            print(pool.map(child, range(4)))""",
    "executor": """
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=mp.get_context('spawn')) as pool:
            print(list(pool.map(child, range(4))))""",
    "subprocess": "print(subprocess.run([sys.executable, 'child.py'], capture_output=True, text=True))",
    "shell": "print(subprocess.run(f'{sys.executable} child.py', shell=True, capture_output=True, text=True))",
    "posix_spawn": """
        pid = os.posix_spawn(sys.executable, [sys.executable, 'child.py'], os.environ)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))""",
    "child of a child": """
        code = 'import subprocess, sys; print(subprocess.run([sys.executable, "child.py"]))'
        print(subprocess.run([sys.executable, '-c', code], capture_output=True, text=True))""",
}
PROGRAM = """
import concurrent.futures, multiprocessing as mp, os, subprocess, sys, threading
from child import child
def run(context):
    process = context.Process(target=child, args=(3,))
    process.start()
    process.join()
    print(process.exitcode)
def main():
    {body}
if __name__ == "__main__":
    main()
"""
CHILD = """
def child(n):
    return sum(helper(k) for k in range(n + 1))
def helper(k):
    return k * k
if __name__ == "__main__":
    print(child(3), flush=True)
"""


@pytest.mark.parametrize("starter", STARTERS)
def test_a_child_is_recorded_and_the_program_notices_nothing(workshop: Workshop, starter: str) -> None:
    workshop.write("child.py", CHILD)
    body = "\n".join(line.removeprefix("    ") for line in STARTERS[starter].splitlines())
    workshop.write("program.py", PROGRAM.format(body=body.strip()))
    recorded, plain = workshop.recorded("program.py"), workshop.plain("program.py")
    # Python's own warning of forks in a process of several threads names the process.
    assert re.sub(r"pid=\d+", "", recorded.stderr) == re.sub(r"pid=\d+", "", plain.stderr)
    assert (recorded.stdout, recorded.returncode) == (plain.stdout, plain.returncode)
    processes = functions_of_processes(workshop.trace)
    assert any({"child", "helper"} <= names and "main" not in names for names in processes), processes
    assert sum("main" in names for names in processes) == 1


def test_any_command_can_be_recorded_through_its_python_children(workshop: Workshop) -> None:
    workshop.write("child.py", CHILD)
    outcome = workshop.recorded("--", "sh", "-c", f"{sys.executable} child.py; {sys.executable} child.py; exit 7")
    assert outcome.visible == ("14\n14\n", "", 7)
    assert [names >= {"child", "helper"} for names in functions_of_processes(workshop.trace)] == [True, True]


def test_a_child_that_outlives_the_program_is_kept(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import os, time
        def orphan():
            time.sleep(0.5)
            late()
        def late():
            open("late.txt", "w").close()
        if os.fork() == 0:
            os.setsid()
            for descriptor in (0, 1, 2):
                os.close(descriptor)
            orphan()
            os._exit(0)
        """,
    )
    assert workshop.recorded("program.py").visible == ("", "", 0)
    for _ in range(100):
        if (workshop.folder / "late.txt").exists():
            break
        workshop.plain("-c", "import time; time.sleep(0.05)")
    assert (workshop.folder / "late.txt").exists()
    strobe.open(workshop.trace)


def test_what_workers_do_counts_in_the_steps_of_their_parent(workshop: Workshop) -> None:
    """The workers have loops of their own, with more iterations; a step is a round of the parent."""
    workshop.write(
        "program.py",
        """
        import multiprocessing, time
        def work(n):
            time.sleep(0.001)
        def round_(pool):
            pool.map(work, range(8), chunksize=1)
        if __name__ == "__main__":
            with multiprocessing.get_context("fork").Pool(2) as pool:
                for _ in range(40):
                    round_(pool)
        """,
    )
    assert workshop.recorded("program.py").visible == ("", "", 0)
    trace = strobe.open(workshop.trace)
    rows = {row["name"]: row for row in trace.profile().to_pylist()}
    assert rows["round_"]["self_per_step_ns"] == pytest.approx(rows["round_"]["avg_ns"])
    assert rows["work"]["calls"] == pytest.approx(320, abs=16)
    assert rows["work"]["self_per_step_ns"] == pytest.approx(8 * rows["work"]["avg_ns"], rel=0.05)


def test_threads_are_recorded_with_their_names(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import threading
        def work(n):
            return n
        threads = [threading.Thread(target=work, args=(n,), name=f"worker-{n}") for n in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        """,
    )
    assert workshop.recorded("program.py").visible == ("", "", 0)
    names = {row["name"] for row in strobe.open(workshop.trace).locations.to_pylist()}
    assert names >= {f"worker-{n}" for n in range(50)}


def test_many_short_threads_do_not_exhaust_the_recorder(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import threading
        def work():
            pass
        for n in range(3000):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        print("done")
        """,
    )
    assert workshop.recorded("program.py").visible == ("done\n", "", 0)
    assert spans_of(workshop.trace, "work") == 3000


def test_strobe_under_strobe_records_the_program_once(workshop: Workshop) -> None:
    workshop.write("child.py", CHILD)
    outcome = workshop.recorded("--", *workshop.command("child.py"))
    assert (outcome.stdout, outcome.returncode) == ("14\n", 0)
    traces = workshop.folder.glob("*.strobe")
    processes = [names for trace in traces for names in functions_of_processes(trace)]
    assert [{"child", "helper"} <= names for names in processes].count(True) == 1


def test_a_python_that_has_no_strobe_runs_and_is_named_as_missing(workshop: Workshop) -> None:
    other = str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}")
    if subprocess.run([other, "-c", "import strobe"], capture_output=True).returncode == 0:
        pytest.skip("strobe is installed in the Python that this environment was made from")
    workshop.write("program.py", f"import subprocess; subprocess.run([{other!r}, '-c', 'print(5)'], check=True)")
    assert workshop.recorded("program.py").visible == ("5\n", "", 0)
    with strobe.open(workshop.trace) as trace:
        notes = [row["text"] for row in trace.quality.to_arrow().to_pylist() if row["what"] == "unrecorded"]
    assert len(notes) == 1
    assert other in notes[0]
    assert "No module named 'strobe'" in notes[0]


REFUSED = """
import os, subprocess, sys
e = sys.executable
for option in ("-S", "-I", "-I", "-sE"):
    subprocess.run([e, option, "child.py"], stdout=subprocess.DEVNULL)
subprocess.run([e, "--version"], stdout=subprocess.DEVNULL)
subprocess.run([e, "child.py"], env={}, stdout=subprocess.DEVNULL)
subprocess.run(["env", "-i", e, "child.py", "bare"], stdout=subprocess.DEVNULL)
subprocess.run(["env", e, "child.py", "recorded"], stdout=subprocess.DEVNULL)
subprocess.run(["./sudo", e, "child.py", "root"], stdout=subprocess.DEVNULL)
child = os.posix_spawn(e, [e, "child.py", "cleared"], {"PATH": ""})
os.waitpid(child, 0)
subprocess.run(["true"])
subprocess.run(["true"])
os.system("true")
try:
    os.execv("child.py", ["child.py"])
except OSError as error:
    print(error)
if os.fork() == 0:
    os.execvp("true", ["true"])
print(os.waitstatus_to_exitcode(os.wait()[1]))
print(os.posix_spawn is __import__("posix").posix_spawn, repr(os.execv), os.execv.__module__, os.execv.__self__)
print(os.execve in os.supports_fd, os.execv in os.supports_fd)
sys.stdout.flush()
os.execv(e, [e, "child.py"])
"""


def test_what_a_program_starts_and_cannot_be_recorded_is_named(workshop: Workshop) -> None:
    workshop.write("child.py", CHILD)
    workshop.write("sudo", '#!/bin/sh\nexec env -i "$@"\n').chmod(0o755)
    workshop.write("program.py", REFUSED)
    recorded, plain = workshop.recorded("program.py"), workshop.plain("program.py")
    assert recorded.visible == plain.visible
    with strobe.open(workshop.trace) as trace:
        quality = trace.quality.to_arrow().to_pylist()
        processes = trace.processes.to_pylist()
    missing = [re.sub(r"(first as )?process \d+", "N", row["text"]) for row in quality if row["what"] == "unrecorded"]
    python = Path(sys.executable).name
    environment = "it was started with another environment, without STROBE_SESSION or our part of PYTHONPATH"
    assert missing == [
        f"{python} -S child.py (N) was not recorded: its option -S leaves out what starts the recorder",
        f"{python} -I child.py (2 times, N) was not recorded: its option -I hides the environment from it",
        f"{python} -sE child.py (N) was not recorded: its option -E hides the environment from it",
        f"{python} child.py (N) was not recorded: {environment}",
        f"env -i {sys.executable} child.py bare (N) was not recorded: {environment}",
        f"sudo {sys.executable} child.py root (N) was not recorded: {environment}",
        f"{python} child.py cleared (N) was not recorded: {environment}",
    ]
    others = [(row["value"], row["text"]) for row in quality if row["what"] == "other_programs"]
    assert others == [(4, "true (3 times), sh: no Python, not recorded (Pythons that a shell starts are recorded)")]
    # The program gave its place to another one, which has its process number.
    first = processes[0]["pid"]
    assert [row["end_state"] for row in processes if row["pid"] == first] == ["replaced", "closed"]
    assert [row["end_state"] for row in processes if row["pid"] != first] == ["closed"]  # started by env, as it was
    assert quality[0]["text"].startswith(f"became {python} child.py; complete up to")


def test_each_program_of_a_chain_names_the_one_that_it_became(workshop: Workshop) -> None:
    workshop.write(
        "chain.py",
        """
        import os, sys
        def work(): pass
        work()
        left = int(sys.argv[1])
        if left:
            os.execv(sys.executable, [sys.executable, "chain.py", str(left - 1)])
        """,
    )
    trace = strobe.open(workshop.recorded("chain.py", "3").trace)
    became = [
        text.partition(";")[0] for (text,) in trace.sql("select text from quality where text like 'became%'").rows()
    ]
    python = Path(sys.executable).name
    assert sorted(became) == [f"became {python} chain.py {left}" for left in range(3)]


def test_a_command_that_hides_the_environment_is_named_where_nothing_was_recorded(workshop: Workshop) -> None:
    workshop.write("child.py", CHILD)
    for words, said in (
        (["env", "-i", sys.executable, "child.py"], "it was started with another environment"),
        ([sys.executable, "-I", "child.py"], "its option -I hides the environment from it"),
    ):
        workshop.trace = workshop.folder / f"{Path(words[0]).name}.strobe"
        assert workshop.recorded("--", *words).visible == ("14\n", "", 0)
        with pytest.raises(TraceError) as raised:
            strobe.open(workshop.trace)
        assert f"{Path(words[0]).name} {' '.join(words[1:])} was not recorded: {said}" in str(raised.value)


# Each fails in its own way; the last three where the child is forked.
FAILING = """
import os, subprocess, sys
{first}
e = sys.executable
def start():
    for words, options in (
        (["/nowhere/python3"], {{}}),
        (["python3.nowhere"], {{}}),
        (["./python3"], {{}}),
        (["./python3.9"], {{}}),
        ([e, "child.py"], {{"cwd": "/nowhere"}}),
        ([e + "/python3"], {{"preexec_fn": os.getpid}}),
        (["./python3"], {{"preexec_fn": os.getpid}}),
        ([e, "child.py"], {{"preexec_fn": os.getpid, "cwd": "/nowhere"}}),
    ):
        try:
            subprocess.run(words, **options)
        except OSError as error:
            print(type(error).__name__)
    try:
        os.posix_spawn("/nowhere/python3", ["python3"], os.environ)
    except OSError as error:
        print(type(error).__name__)
    subprocess.run(["./python3.8"], cwd="there")
    subprocess.run([e, "child.py"])
    subprocess.run([e, "-I", "child.py"], preexec_fn=os.getpid)
    subprocess.run(["true"])
{second}
"""


def write_failing(workshop: Workshop, first: str, second: str) -> None:
    workshop.write("child.py", CHILD)
    workshop.write("python3", "#!/bin/sh\n")
    workshop.write("python3.9", "neither a script nor a program").chmod(0o755)
    workshop.write("there/python3.8", f"#!{sys.executable} -I\n").chmod(0o755)
    workshop.write("program.py", FAILING.format(first=first, second=second))


def said_of_others(trace: Path) -> list[tuple[object, object, str]]:
    """What the quality table says of processes that are not there."""
    with strobe.open(trace) as opened:
        rows = opened.quality.to_pylist()
    told = [row for row in rows if row["what"] in ("unrecorded", "other_pythons", "other_programs")]
    return [(row["what"], row["value"], re.sub(r" \(process \d+\)", "", str(row["text"]))) for row in told]


def test_a_start_that_fails_is_no_process(workshop: Workshop) -> None:
    write_failing(workshop, "", "start()")
    recorded, plain = workshop.recorded("program.py"), workshop.plain("program.py")
    assert recorded.visible == plain.visible
    hidden = "was not recorded: its option -I hides the environment from it"
    assert said_of_others(workshop.trace) == [
        ("unrecorded", None, f"python3.8 {hidden}"),
        ("unrecorded", None, f"{Path(sys.executable).name} -I child.py {hidden}"),
        ("other_programs", 1, "true: no Python, not recorded"),
    ]


def test_what_a_recorded_part_of_a_program_starts_is_a_remark_that_names_the_way(workshop: Workshop) -> None:
    """The program has subprocess, and functions under names of its own, before strobe; it records twice."""
    early = """
from os import posix_spawn
from subprocess import _fork_exec
import strobe
"""
    twice = """
subprocess._fork_exec = _fork_exec
for name in ("first.strobe", "second.strobe"):
    with strobe.record(name, trace="python"):
        start()
        os.waitpid(posix_spawn(e, [e, "child.py", "early"], os.environ), 0)
"""
    write_failing(workshop, early, twice)
    outcome = workshop.plain("program.py")
    assert (outcome.stderr, outcome.returncode) == ("", 0)
    python = Path(sys.executable).name
    pythons = f"{python} -I child.py, {python} child.py, {python} child.py early"
    for name in ("first.strobe", "second.strobe"):
        advice = "strobe.record() records this process and its forks, `strobe run` records what it starts, too"
        assert said_of_others(workshop.folder / name) == [
            ("other_pythons", 4, f"{pythons}, python3.8: not recorded ({advice})"),
            ("other_programs", 1, "true: no Python, not recorded"),
        ]
        with strobe.open(workshop.folder / name) as trace:
            quality = summarise(trace).quality
        assert (len(quality.losses), len(quality.remarks), quality.complete) == (0, 2, True)


def test_processes_have_the_names_that_the_program_gives_them(workshop: Workshop) -> None:
    workshop.write("child.py", CHILD)
    workshop.write(
        "program.py",
        """
        import concurrent.futures, multiprocessing as mp, os, warnings
        from child import child
        # Python 3.12 warns of a fork beside threads; whether those of a pool are gone by then is a matter of luck.
        warnings.simplefilter("ignore", DeprecationWarning)
        if __name__ == "__main__":
            for method in ("fork", "spawn", "forkserver"):
                with mp.get_context(method).Pool(1) as pool:
                    pool.map(child, range(2))
            with concurrent.futures.ProcessPoolExecutor(1, mp_context=mp.get_context("fork")) as pool:
                pool.submit(child, 3).result()
            process = mp.get_context("fork").Process(target=child, args=(1,), name="reader")
            process.start()
            process.join()
            if os.fork() == 0:
                child(1)
                os._exit(0)
            os.wait()
        """,
    )
    assert workshop.recorded("program.py").visible == workshop.plain("program.py").visible
    with strobe.open(workshop.trace) as trace:
        rows = trace.processes.to_pylist()
        missing = [
            row for row in trace.quality.to_arrow().to_pylist() if row["what"] in ("unrecorded", "other_programs")
        ]
    assert missing == []
    names = [re.sub(r"\d+", "N", str(row["name"])) for row in rows]
    assert sorted(names) == sorted(
        [
            "",
            "ForkPoolWorker-N",
            "SpawnPoolWorker-N",
            "ForkServerPoolWorker-N",
            "fork server of multiprocessing",
            "resource tracker of multiprocessing",
            "ForkProcess-N",
            "reader",
            "fork",
        ]
    )
    # A tree: everybody was started by somebody who is in the trace.
    pids = {row["pid"] for row in rows}
    assert all(row["parent_pid"] in pids for row in rows if not row["main"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_processes_that_become_another_user_are_recorded_and_their_own_forks_are_missed(workshop: Workshop) -> None:
    # As servers do that are started by root: their workers give their rights up before they come to code of the user's.
    workshop.write(
        "server.py",
        """
        import os, signal

        def serve(times):
            for _ in range(times):
                pass

        def fork_and_wait(*numbers):
            child = os.fork()
            if child:
                return os.waitpid(child, 0)[1]
            os.setgid(65534)
            os.setuid(65534)
            for number in range(1000):
                serve(number % 3)
            for _ in range(2):                 # it may not make files in the folder of the trace
                if os.fork() == 0:
                    serve(1)
                    os._exit(0)
                os.wait()
            for end in numbers:
                os.kill(os.getpid(), end)
            os._exit(0)

        print(fork_and_wait(), fork_and_wait(signal.SIGKILL))
        """,
    )
    outcome = workshop.recorded("server.py")
    assert outcome.visible == ("0 9\n", "", 0)
    trace = strobe.open(outcome.trace)
    processes = trace.sql("select process, main from processes").rows()
    assert sorted(main for _, main in processes) == [False, False, True]
    for process, main in processes:
        served = trace.sql(
            f"select count(*) from spans s join regions r using (region) where r.name = 'serve' and process = {process}"
        )
        missed = trace.sql(
            f"select text from quality where what = 'forks_not_recorded' and value > 0 and process = {process}"
        )
        assert served.rows() == [(0 if main else 1000,)]
        assert [text.partition(" (")[0] for (text,) in missed.rows()] == (
            [] if main else ["2 forked processes not recorded: they could make no files in the trace folder"]
        )
    assert not list(outcome.trace.glob("*.rings"))
