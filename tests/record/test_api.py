"""Recording from inside a program: record, region, step; NVTX ranges; the switch that makes them free."""

import dis
import json

import pytest

import strobe
from strobe.record.api import region
from tests.record.workshop import Workshop, spans_of

pytestmark = pytest.mark.every_python

PROGRAM = """
import json
import strobe

def inner(n):
    return n + 1

@strobe.region("decorated")
def outer(n):
    with strobe.region("block"):
        return inner(n)

before = outer(0)                      # nothing is recorded here
with strobe.record("part.strobe") as recording:
    for n in range(30):
        outer(n)
        strobe.step()
after = outer(0)
with strobe.open(recording.path) as trace:
    rows = trace.sql("select name, paradigm, count(*) as n, max(depth) as depth from spans group by 1, 2 order by 1")
    print(json.dumps({row["name"]: [row["paradigm"], row["n"], row["depth"]] for row in rows.to_arrow().to_pylist()}))
"""


def test_a_part_of_a_program_is_recorded_and_nothing_else(workshop: Workshop) -> None:
    workshop.write("program.py", PROGRAM)
    outcome = workshop.plain("program.py")
    assert outcome.returncode == 0, outcome.stderr
    found = json.loads(outcome.stdout)
    assert found["decorated"][:2] == ["user", 30]
    assert found["block"] == ["user", 30, found["outer"][2] + 1]
    assert found["inner"][:2] == ["python", 30]
    assert found["strobe.step"][:2] == ["user", 30]


def test_steps_are_as_many_as_the_program_says_whether_they_are_kept_or_folded(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import strobe

        def work(n):
            return sum(range(n))

        for keep in ("3", "all"):
            with strobe.record("steps.strobe", keep=keep, trace="python") as recording:
                for n in range(50):
                    work(n)
                    strobe.step()
                work(n)
            print(len(strobe.open(recording.path).steps()))
        """,
    )
    assert workshop.plain("program.py").visible == ("50\n50\n", "", 0)


def test_a_decorated_function_is_recorded_each_time_and_never_overwrites(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import glob
        import strobe

        @strobe.record("call.strobe")
        def main():
            return sum(map(abs, range(5)))

        assert main() == main() == 10
        print(sorted(glob.glob("*.strobe")))
        """,
    )
    outcome = workshop.plain("program.py")
    assert outcome.visible == ("['call-2.strobe', 'call.strobe']\n", "", 0)


def test_two_recordings_at_once_are_refused_with_a_sentence(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import strobe
        with strobe.record("outer.strobe"):
            with strobe.record("inner.strobe"):
                pass
        """,
    )
    outcome = workshop.plain("program.py")
    assert "is being recorded already" in outcome.stderr
    assert outcome.returncode == 1


def test_a_program_that_records_itself_goes_on_in_the_trace_of_strobe_run(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import strobe

        def part(number):
            return number

        with strobe.record("inner.strobe", keep=5) as recording:
            part(1)
        assert strobe.record("call.strobe")(part)(2) == 2
        strobe.stop()
        part(3)
        strobe.start("more.strobe", keep=5)
        part(4)
        strobe.stop()
        part(5)
        print(recording.path)
        try:
            strobe.record(kept=5)
        except TypeError as error:
            print(type(error).__name__)
        """,
    )
    outcome = workshop.recorded("program.py")
    assert outcome.returncode == 0
    assert outcome.stdout == f"{outcome.trace}\nTypeError\n"
    remark = "strobe: `strobe run` records this program already; what it records itself is in that trace\n"
    assert outcome.stderr == remark
    assert [path.name for path in workshop.folder.glob("*.strobe")] == ["out.strobe"]
    assert spans_of(outcome.trace, "part") == 3
    blocks = "select count(*) from spans s join regions r using (region) where r.name = 'strobe.record'"
    assert strobe.open(outcome.trace).sql(blocks).rows() == [(1,)]


def test_regions_of_a_program_under_strobe_run_are_recorded(workshop: Workshop) -> None:
    workshop.write("program.py", "import strobe\nfor _ in range(9):\n    with strobe.region('part'):\n        pass\n")
    assert workshop.recorded("program.py").visible == ("", "", 0)
    with strobe.open(workshop.trace) as trace:
        rows = trace.sql("select count(*) as n from spans where name = 'part'").to_arrow().to_pylist()
    assert rows == [{"n": 9}]


def test_parameters_of_a_region_split_its_profile(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import json, time
        import strobe

        def busy(ns):
            begin = time.perf_counter_ns()
            while time.perf_counter_ns() - begin < ns:
                pass
            return time.perf_counter_ns() - begin

        took = {64: [0, 0], 128: [0, 0]}  # inside of the regions, and outside
        for i in range(60):
            n, method = (64, "cg") if i % 3 else (128, "direct")
            begin = time.perf_counter_ns()
            with strobe.region("solve", n=n, method=method, tolerance=0.1 * i):
                took[n][0] += busy(n * 20_000)
            took[n][1] += time.perf_counter_ns() - begin
        for value in range(130):
            with strobe.region("many", value=value):
                pass
        print(json.dumps(took))
        """,
    )
    took = {int(n): both for n, both in json.loads(workshop.recorded("program.py").stdout).items()}
    with strobe.open(workshop.trace) as trace:
        rows = {row["name"]: row for row in trace.profile(step="all").to_pylist()}
    small, large = rows["solve (n=64, method=cg)"], rows["solve (n=128, method=direct)"]
    assert (small["calls"], large["calls"], rows["solve"]["calls"]) == (40, 20, 60)
    for row, (inside_ns, outside_ns) in ((small, took[64]), (large, took[128])):
        assert 0.99 * inside_ns <= row["total_ns"] <= 1.01 * outside_ns
    parts = small["total_ns"] + large["total_ns"] + rows["solve"]["self_ns"]
    assert parts == pytest.approx(rows["solve"]["total_ns"], abs=100 * 60)
    assert rows["many (value=99)"]["calls"] == 1
    assert rows["many (other)"]["calls"] == 30
    assert "many (value=100)" not in rows


def test_a_region_that_raises_ends_and_passes_the_exception_on(workshop: Workshop) -> None:
    workshop.write(
        "program.py",
        """
        import strobe
        try:
            with strobe.region("fails"):
                raise KeyError("mine")
        except KeyError as error:
            print(error)
        with strobe.region("after"):
            pass
        """,
    )
    assert workshop.recorded("program.py").visible == ("'mine'\n", "", 0)
    with strobe.open(workshop.trace) as trace:
        rows = trace.sql("select name, depth, complete from spans where paradigm = 'user' order by start_ns")
        spans = [tuple(row.values()) for row in rows.to_arrow().to_pylist()]
    assert [name for name, _, _ in spans] == ["fails", "after"]
    assert spans[0][1:] == spans[1][1:]


def test_without_a_recorder_a_region_tests_one_attribute_and_calls_nothing() -> None:
    entering = list(dis.get_instructions(region.__enter__))
    first_jump = next(i for i, each in enumerate(entering) if "JUMP" in each.opname)
    before = [each.opname for each in entering[:first_jump]]
    assert before.count("LOAD_ATTR") == 1
    assert not any("CALL" in name for name in before)


def test_nvtx_ranges_and_marks_of_anybody_are_recorded(workshop: Workshop) -> None:
    pytest.importorskip("nvtx", reason="the nvtx package is not installed")
    workshop.write(
        "program.py",
        """
        import nvtx

        @nvtx.annotate("decorated", domain="mine")
        def work():
            with nvtx.annotate("inside"):
                pass

        for _ in range(6):
            work()
        nvtx.push_range("pushed"), nvtx.pop_range()
        nvtx.push_range("aten::conv2d, seq = 4, op_id = 9, sizes = [[1, 2]]"), nvtx.pop_range()
        nvtx.mark("moment")
        """,
    )
    assert workshop.recorded("program.py").visible == ("", "", 0)
    with strobe.open(workshop.trace) as trace:
        rows = (
            trace.sql("select name, count(*) as n from spans where paradigm = 'nvtx' group by 1").to_arrow().to_pylist()
        )
    assert {row["name"]: row["n"] for row in rows} == {
        "decorated": 6,
        "inside": 6,
        "pushed": 1,
        "aten::conv2d": 1,
        "moment": 1,
    }


def test_odd_names_and_values_pass_as_they_do_without_a_recorder(workshop: Workshop) -> None:
    workshop.write(
        "odd.py",
        """
        import strobe

        def odd():
            strobe.counter("loss", None)
            strobe.counter("loss", "high")
            strobe.counter("a\\ud800", 1)
            strobe.mark(5)
            strobe.mark("b\\ud800", 10**400)
            with strobe.region("x", n=None), strobe.region(7), strobe.region("load"), strobe.region("step-1"):
                pass

        odd()
        strobe.start("first.strobe", trace="nvtx", counters_per_region="other, step-*")
        odd()
        strobe.stop()
        strobe.start("second.strobe", trace="nvtx", counters_per_region="load")
        odd()                               # and the program forgets to stop
        """,
    )
    assert workshop.plain("odd.py").visible == ("", "", 0)
    for name, counted in (("first", "step-1"), ("second", "load")):
        with strobe.open(workshop.folder / f"{name}.strobe") as trace:
            metrics = {str(row["name"]) for row in trace.sql("select distinct metric as name from metrics").to_pylist()}
            lost = {row["what"]: row["value"] for row in trace.quality.to_pylist()}
            ended = trace.job.ended
        assert {metric.partition(": ")[0] for metric in metrics if ": cpu time" in metric} == {counted}
        assert "a\\ud800" in metrics
        assert lost["values_not_recorded"] == 4
        assert ended


def test_a_recording_that_cannot_start_leaves_nothing(workshop: Workshop) -> None:
    workshop.write(
        "fails.py",
        """
        import os
        import strobe
        from strobe.record.program import session

        real = session._start_adapters
        session._start_adapters = lambda settings: {}["nothing"]
        try:
            with strobe.record("a.strobe"):
                pass
        except strobe.StrobeError as error:
            print(type(error).__name__, os.path.exists("a.strobe"), session.active())
        session._start_adapters = real
        with strobe.record("a.strobe"):
            pass
        """,
    )
    assert workshop.plain("fails.py").visible == ("RecordError False False\n", "", 0)
    wrong = {"STROBE_KEEP": "much", "STROBE_DISABLE": "1"}
    assert workshop.plain("-c", "import strobe\nwith strobe.record(): pass", env=wrong).visible == ("", "", 0)
