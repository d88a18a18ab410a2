"""Recording windows: from when to when a program is recorded, in all of its processes."""

import json
import sys

import pytest

import strobe
from strobe.present.summary import summarise
from tests.record.workshop import Workshop

pytestmark = pytest.mark.every_python

STEPS = """
import strobe
from tests_module import solve

def train():
    for n in range(10):
        solve(n)
        strobe.step()

train()
"""
MODULE = """
def inner(n):
    return n

def solve(n):
    return [inner(n) for _ in range(3)]
"""


def calls(workshop: Workshop) -> dict[str, int]:
    """How often each Python function and user region was recorded."""
    with strobe.open(workshop.trace) as trace:
        rows = trace.sql("select name, count(*) as n from spans where paradigm in ('python', 'user') group by 1")
        return {row["name"]: row["n"] for row in rows.to_arrow().to_pylist()}


def quality(workshop: Workshop) -> dict[str, int]:
    """Counters of the quality table, summed."""
    with strobe.open(workshop.trace) as trace:
        rows = trace.sql("select what, sum(value)::bigint as n from quality where value is not null group by 1")
        return {row["what"]: row["n"] for row in rows.to_arrow().to_pylist()}


@pytest.mark.parametrize(
    ("options", "solved", "steps"),
    [
        (["--start", "step:4", "--stop", "step:7"], 3, 3),
        (["--start", "step:8"], 2, 2),
        (["--stop", "step:0"], 0, 0),
        (["--start", "call:tests_module.solve:3", "--stop", "call:tests_module.solve:2"], 2, 1),
        (["--start", "call:train", "--stop", "step:2"], 2, 2),
        (["--start", "paused"], 0, 0),
        (["--start", "1h"], 0, 0),
    ],
)
def test_only_what_lies_in_the_window_is_recorded(
    workshop: Workshop, options: list[str], solved: int, steps: int
) -> None:
    workshop.write("tests_module.py", MODULE)
    workshop.write("program.py", STEPS)
    outcome = workshop.recorded(*options, "program.py")
    assert outcome.visible == ("", "", 0)
    found = calls(workshop)
    # From 3.12 on, of the call that opens the window only what it calls is recorded.
    opens = sys.version_info >= (3, 12) and "call:tests_module.solve:3" in options
    assert (found.get("solve", 0), found.get("strobe.step", 0)) == (solved - opens, steps)
    assert found.get("inner", 0) == 3 * solved
    assert quality(workshop).get("leaves_unmatched", 0) == 0
    assert list(workshop.trace.glob("window-*")) == []


def test_a_program_pauses_and_resumes_and_what_is_left_out_is_said(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import json, time
        import strobe

        def work(n):
            if n == 3:
                strobe.pause()          # within a function: it ends here, as far as the trace knows
            return n

        def outer():
            for n in range(10):
                if n == 6:
                    strobe.resume()
                work(n)

        began = time.monotonic_ns()
        assert strobe.current() is None
        with strobe.record("out.strobe"):
            assert strobe.current().recording
            outer()
            time.sleep(0.02)
            with strobe.region("last"):
                strobe.pause()
                assert not strobe.current().recording
                time.sleep(0.05)
        assert strobe.current() is None
        strobe.pause(); strobe.resume(); strobe.stop()    # nothing is recorded: nothing happens
        handle = strobe.start("second.strobe", trace="python")
        work(1)
        strobe.stop()
        print(handle.path)
        """,
    )
    outcome = workshop.plain("program.py")
    assert (outcome.stderr, outcome.returncode) == ("", 0)
    found = calls(workshop)
    assert found["work"] == 8
    assert found["outer"] == 1
    assert found["last"] == 1
    assert 50 <= quality(workshop)["unrecorded_ms"] < 10_000
    with strobe.open(outcome.stdout.strip()) as trace:
        rows = trace.sql("select name, count(*) as n from spans group by 1").to_arrow().to_pylist()
    assert rows == [{"name": "work", "n": 1}]


def test_children_follow_the_window_of_the_process_that_counts(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import multiprocessing, os, sys, time
        import strobe

        def task(name):
            return name

        def inside(): pass

        def work(pipe):
            while (name := pipe.recv()) != "end":
                task(name)
                if name == "inside":
                    inside()
                pipe.send((os.getpid(), strobe.current().recording))

        def ask(pipe, name, expected):
            for _ in range(3000):                    # a child hears of it a moment later
                pipe.send(name)
                if pipe.recv()[1] == expected:
                    return
                time.sleep(0.01)
            os._exit(9)                              # the child never heard of it

        if __name__ == "__main__":
            pipes, children = [], []
            for method in ("fork", "spawn"):
                context = multiprocessing.get_context(method)
                ours, theirs = context.Pipe()
                children.append(context.Process(target=work, args=(theirs,)))
                children[-1].start()
                pipes.append(ours)
            for expected in (False, True, False):
                for pipe in pipes:
                    ask(pipe, "x", expected)
                if expected:
                    for pipe in pipes:
                        for _ in range(50):
                            pipe.send("inside"); pipe.recv()
                strobe.step()
            for pipe, child in zip(pipes, children):
                pipe.send("end")
                child.join()
        """,
    )
    outcome = workshop.recorded("--start", "step:1", "--stop", "step:2", "program.py")
    assert outcome.visible == ("", "", 0)
    with strobe.open(workshop.trace) as trace:
        rows = (
            trace.sql(
                "select p.pid, count(*) as n from spans join processes p using (process)"
                " where spans.name = 'inside' group by 1"
            )
            .to_arrow()
            .to_pylist()
        )
    assert [row["n"] for row in rows] == [50, 50]


def test_a_signal_opens_and_closes_the_window_and_programs_keep_their_handlers(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import os, signal, sys
        import strobe

        def seen(n):
            return n

        for n in range(6):
            seen(n)
            os.kill(os.getpid(), signal.SIGUSR1)
        signal.signal(signal.SIGUSR1, lambda *_: print("mine"))
        os.kill(os.getpid(), signal.SIGUSR1)
        """,
    )
    outcome = workshop.recorded("--start", "paused", "--signal", "USR1", "program.py")
    assert outcome.visible == ("mine\n", "", 0)
    assert calls(workshop)["seen"] == 3  # of 1, 3 and 5
    assert quality(workshop)["signal_taken_over"] == 1


def test_a_window_of_time_opens_and_closes_by_itself(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import time
        import strobe

        def tick(n):
            return n

        def wait(recording):
            until = time.monotonic() + 60
            while strobe.current().recording != recording:
                assert time.monotonic() < until
                time.sleep(0.001)

        tick(0)
        wait(True)
        tick(1); tick(1)
        wait(False)
        tick(2)
        """,
    )
    outcome = workshop.recorded("program.py", env={"STROBE_START": "sec:1", "STROBE_FOR": "100ms"})
    assert outcome.visible == ("", "", 0)
    assert calls(workshop)["tick"] in (0, 2)
    manifest = json.loads((workshop.trace / "job.json").read_text())
    assert manifest["settings"]["options"]["start"] == {
        "value": "sec:1",
        "origin": "STROBE_START in the environment",
    }
    assert quality(workshop)["unrecorded_ms"] > 0


def test_pauses_reach_workers_that_were_forked_before_and_while_paused(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import multiprocessing, os, sys, time
        import strobe

        def task(n):
            return n

        def state(n):
            time.sleep(0.01)                    # so that each child takes some
            return os.getpid(), strobe.current().recording

        def wait(pool, expected):
            for _ in range(300):                # a child hears of it a moment later
                states = dict(pool.map(state, range(6), chunksize=1))
                if list(states.values()) == [expected] * 2:
                    return
            raise SystemExit("a child never heard of it")

        if __name__ == "__main__":
            fork = multiprocessing.get_context("fork")
            with fork.Pool(2) as early:
                strobe.pause()
                with fork.Pool(2) as late:
                    for pool in (early, late):
                        wait(pool, False)
                        pool.map(task, range(100))
                    strobe.resume()
                    for pool in (early, late):
                        wait(pool, True)
                        pool.map(task, range(100))
        """,
    )
    outcome = workshop.recorded("program.py")
    assert outcome.visible == ("", "", 0)
    with strobe.open(workshop.trace) as trace:
        rows = trace.sql("select count(*) as n from spans where name = 'task'").to_pylist()
    assert rows == [{"n": 200}]
    assert list(workshop.trace.glob("window-*")) == []


def test_windows_that_open_and_close_while_a_call_is_awaited(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import strobe

        def never(): pass
        def last(): strobe.pause()
        def seen(n): return n

        strobe.resume()                # call:never is awaited
        seen(1)
        last()                         # call:last is awaited: it ends after the window has closed
        seen(2)
        strobe.resume()
        seen(3)
        strobe.pause()
        seen(4)
        """,
    )
    outcome = workshop.recorded("--start", "call:__main__.never", "--stop", "call:__main__.last", "program.py")
    assert outcome.visible == ("", "", 0)
    assert calls(workshop) == {"seen": 2, "last": 1}


@pytest.mark.parametrize(("stop", "expected"), [("second", 3), ("first", 1)])
def test_the_return_of_the_call_that_opened_is_not_that_of_another(
    workshop: Workshop, stop: str, expected: int
) -> None:
    workshop.write(
        "program.py",
        """
        def seen(): pass
        def first(): seen()
        def second(): seen()

        first(); seen(); second(); seen()
        """,
    )
    outcome = workshop.recorded("--start", "call:first", "--stop", f"call:{stop}", "program.py")
    assert outcome.visible == ("", "", 0)
    assert calls(workshop)["seen"] == expected


def test_a_window_is_turned_by_one_at_a_time(workshop: Workshop) -> None:
    """A signal that comes while a window is closing opens one after that, and not within."""
    workshop.write(
        "program.py",
        """
        import os, signal
        import strobe
        from strobe.record.program import session

        def seen(n): return n

        depth = deepest = 0

        def turning(turn):
            def call():
                global depth, deepest
                depth += 1
                deepest = max(deepest, depth)
                if turn is pause:
                    os.kill(os.getpid(), signal.SIGUSR1)
                turn()
                depth -= 1
            return call

        pause, resume = session.pause, session.resume
        session.pause, session.resume = turning(pause), turning(resume)
        strobe.pause()
        session.pause, session.resume = pause, resume
        print(deepest, strobe.current().recording)
        seen(1)
        """,
    )
    outcome = workshop.recorded("--signal", "USR1", "program.py")
    assert outcome.visible == ("1 True\n", "", 0)
    assert calls(workshop)["seen"] == 1


def test_a_program_that_becomes_itself_again_leads_its_windows(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import os, sys
        import strobe

        def seen(n): return n

        if len(sys.argv) == 1:
            os.execv(sys.executable, [sys.executable, __file__, "again"])
        strobe.step()
        seen(1)
        """,
    )
    outcome = workshop.recorded("--start", "step:1", "program.py")
    assert outcome.visible == ("", "", 0)
    assert calls(workshop) == {"seen": 1}


def test_a_window_that_never_opens_is_told(workshop: Workshop) -> None:
    workshop.write("program.py", "")  # it may end within a millisecond
    workshop.recorded("--start", "paused", "program.py")
    with strobe.open(workshop.trace) as trace:
        assert "the recording window never opened" in summarise(trace).verdict.text
