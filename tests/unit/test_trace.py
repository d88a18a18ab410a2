"""What a trace says, on traces made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from strobe.errors import QueryError, UsageError
from strobe.trace.archive import Job
from tests.unit.hand_made import ZERO_NS, HandMadeProcess, make_trace, span

pytestmark = pytest.mark.every_python

TRAIN = [
    span("step", 0, 100, span("aten::mm", 10, 40, span("aten::empty", 12, 15)), span("load", 50, 90, role="data")),
    span("step", 100, 220, span("aten::mm", 110, 150)),
]


def test_times_count_from_the_zero_of_the_trace_and_ids_are_global():
    trace = make_trace({"main": TRAIN}, {"worker": [span("load", 5, 25, role="data")]})
    names = dict(zip(trace.regions.column("region"), trace.regions.column("name"), strict=True))
    spans = trace.spans().to_arrow().to_pylist()
    assert [(s["location"], names[s["region"]], s["start_ns"], s["duration_ns"], s["parent"]) for s in spans] == [
        (0, "step", 0, 100, None),
        (0, "aten::mm", 10, 30, 0),
        (0, "aten::empty", 12, 3, 1),
        (0, "load", 50, 40, 0),
        (0, "step", 100, 120, None),
        (0, "aten::mm", 110, 40, 4),
        (1, "load", 5, 20, None),
    ]


def test_equal_regions_of_two_processes_are_one_region_and_equal_call_paths_one_call_path():
    trace = make_trace({"main": TRAIN}, {"main": TRAIN})
    assert sorted(trace.regions.column("name")) == ["aten::empty", "aten::mm", "load", "step"]
    assert len(trace.call_paths) == 4
    first, second = trace.span_arrays(0), trace.span_arrays(1)
    np.testing.assert_array_equal(first["call_path"], second["call_path"])


def test_the_same_function_under_two_callers_has_two_call_paths():
    trace = make_trace({"main": [span("a", 0, 10, span("f", 1, 2)), span("b", 10, 20, span("f", 11, 12))]})
    assert trace.call_paths.rows() == [(0, None, 0, 0), (1, 0, 1, 1), (2, None, 2, 0), (3, 2, 1, 1)]


def test_a_window_holds_the_spans_that_overlap_it():
    trace = make_trace({"main": TRAIN})
    assert trace.spans(0, 40, 100).column("start_ns") == [0, 50]
    assert trace.span_arrays(0, 100, 105)["start_ns"].tolist() == [100]


def test_self_time_is_the_duration_without_the_spans_directly_inside():
    assert make_trace({"main": TRAIN}).spans().column("self_ns") == [30, 27, 3, 40, 80, 40]


def test_the_main_process_is_number_0_whatever_its_pid():
    worker = HandMadeProcess({"w": [span("load", 1, 2)]}, pid=7, main=False)
    trace = make_trace(worker, HandMadeProcess({"m": TRAIN}, pid=9, main=True))
    assert trace.processes.column("pid") == [9, 7]
    assert trace.locations.column("name") == ["m", "w"]


def test_without_a_manifest_the_zero_is_the_start_of_the_first_process():
    assert make_trace({"main": TRAIN}, job=Job()).zero_ns == ZERO_NS


def test_metrics_carry_their_unit_and_zeroed_times():
    metric = {"name": "rss", "unit": "bytes", "location": -1, "time_ns": [0, 50], "value": [1.0, 2.0]}
    trace = make_trace(HandMadeProcess({"main": TRAIN}, metrics=[metric]))
    assert trace.metrics().rows() == [("rss", 0, None, 0, 1.0, "bytes"), ("rss", 0, None, 50, 2.0, "bytes")]


def test_missing_metrics_name_the_option_that_records_them():
    assert "--trace +metrics" in make_trace({"main": TRAIN}).metrics().note


def test_cells_hold_global_regions_and_say_where_nothing_ran():
    trace = make_trace({"main": TRAIN}, {"worker": [span("load", 50, 100, role="data")]})
    regions, shares, marks = trace.pyramid.cells([0, 1], 0, 100, 10)
    names = [*trace.regions.column("name"), ""]
    shown = [[names[r] if r != 0xFFFFFFFF else "" for r in line] for line in regions]
    assert shown[0] == ["step", "aten::mm", "aten::mm", "aten::mm", "step", "load", "load", "load", "load", "step"]
    assert shown[1] == [""] * 5 + ["load"] * 5
    assert shares[1].tolist() == [0] * 5 + [255] * 5
    assert (marks == 0xFFFFFFFF).all()
    nested, filled = trace.pyramid.stack_cells(0, 0, 100, 10, 2)
    assert nested.shape == filled.shape == (2, 10)
    assert filled[1].tolist() == [0] + [255] * 3 + [0] + [255] * 4 + [0]


def test_sql_sees_spans_with_names_and_only_reads():
    trace = make_trace({"main": TRAIN})
    answer = trace.sql(
        "select name, sum(duration_ns) as total from spans where role = 'operator' group by 1 order by 2"
    )
    assert answer.rows() == [("aten::empty", 3), ("aten::mm", 70)]
    with pytest.raises(QueryError, match="only one SELECT"):
        trace.sql("drop table spans")
    with pytest.raises(QueryError, match="disabled by configuration"):
        trace.sql("select * from read_csv('/etc/passwd')")
    with pytest.raises(QueryError, match="no_such_table") as caught:
        trace.sql("select * from no_such_table")
    assert "spans" in caught.value.do
    assert " _spans" not in caught.value.do, "names with an underscore are the engine's"


def test_sql_stops_at_its_time_limit():
    with pytest.raises(QueryError, match="took more than"):
        make_trace({"main": TRAIN}).sql("select count(*) from range(100000000) a, range(100000) b", timeout_s=0.1)


@pytest.mark.parametrize(
    ("end_state", "exit_code", "ended", "words"),
    [
        ("closed", 3, {}, "ended with exit code 3"),
        ("exited", 4, {}, "left by os._exit with exit code 4; complete up to 220 ns"),
        ("lost", None, {"signal": 9}, "killed by signal 9 (SIGKILL); complete up to 220 ns"),
        ("lost", None, {}, "ended without a word (killed or crashed); complete up to 220 ns"),
        ("running", None, {}, "still running; complete up to 220 ns"),
    ],
)
def test_quality_says_how_a_process_ended(end_state, exit_code, ended, words):
    process = HandMadeProcess({"main": TRAIN}, end_state=end_state, exit_code=exit_code, quality={"records_lost": 2})
    trace = make_trace(process, job=Job(zero_ns=ZERO_NS, ended=ended))
    lost = "2 records lost (buffers were full)"
    assert trace.quality.rows() == [(0, 100, "ended", None, words), (0, 100, "records_lost", 2, lost)]


def test_an_unknown_question_lists_the_known_ones():
    trace = make_trace({"main": TRAIN})
    with pytest.raises(UsageError, match="no analysis 'kernelz'") as caught:
        trace.ask("kernelz")
    assert "profile" in caught.value.do
    with pytest.raises(AttributeError):
        trace.kernelz  # noqa: B018


def test_an_unknown_location_is_one_sentence():
    with pytest.raises(UsageError, match="no location 7"):
        make_trace({"main": TRAIN}).span_arrays(7)


@pytest.mark.parametrize(
    ("command", "program"),
    [
        (("/usr/bin/python3", "a/train.py", "-c"), "train.py"),
        (("python", "-m", "package.module", "x"), "package.module"),
        (("python", "-c", "import x"), "-c"),
        (("bash", "-c", "python train.py"), "bash"),
        (("python",), "python"),
        ((), ""),
    ],
)
def test_the_program_is_called_by_its_name(command, program):
    made = make_trace(HandMadeProcess({"main": TRAIN}), job=Job(command=command or ("",)))
    assert made.info.program == program
