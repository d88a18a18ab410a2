"""Profiles of TAU, as it writes them, against sums made by hand."""

from pathlib import Path

import pytest

import strobe
from strobe.errors import FormatError
from tests.formats.test_chrome import quality
from tests.formats.test_profiles import PATHS, by_path, text_file


def tau(*rows: str, metric: str = "_MULTI_TIME", count: int | None = None) -> str:
    """A profile of TAU 2.28; rows are name, calls, calls of others, exclusive, inclusive, group."""
    head = f"{count or len(rows)} templated_functions{metric} \n# Name Calls Subrs Excl Incl ProfileCalls # "
    attributes = "<metadata><attribute><name>Hostname</name><value>node1</value></attribute></metadata>\n"
    body = "".join('"{}" {} {} {} {} 0 GROUP="{}" \n'.format(*row.split("|")) for row in rows)
    events = '# eventname numevents max min mean sumsqr\n"Message size for all-gather" 68 309428 309428 309428 6510\n'
    return head + attributes + body + "0 aggregates\n1 userevents\n" + events


FLAT = (
    ".TAU application|1|1|6|1000.5|TAU_USER",
    "int main(int, char **) C [{src.c} {26,1}-{473,1}]  |1|3|494.5|994.5|TAU_DEFAULT",
    "MPI_Barrier()  |3|0|500|500|MPI",
    "step [{a b.py} {7,0}] [THROTTLED]|2|0|0.0005|0.0005|TAU_DISABLE",
)


def test_functions_of_tau_have_their_sums(tmp_path: Path) -> None:
    trace = strobe.open(text_file(tmp_path / "profile.3.0.0", tau(*FLAT)))
    rows = trace.sql("select name, count, total_ns, self_ns from statistics order by total_ns desc").rows()
    assert rows == [
        (".TAU application", 1, 1_000_500, 6_000),
        ("int main(int, char **) C", 1, 994_500, 494_500),
        ("MPI_Barrier()", 3, 500_000, 500_000),
        ("step [THROTTLED]", 2, 0, 0),
    ]
    assert trace.sql(
        "select name, file, line, paradigm from regions where paradigm != 'other' or line > 0 order by 1"
    ).rows() == [
        ("MPI_Barrier()", "", 0, "mpi"),
        ("int main(int, char **) C", "src.c", 26, "other"),
        ("step [THROTTLED]", "a b.py", 7, "python"),
    ]
    assert trace.sql("select distinct thread from statistics").rows() == [("thread 0",)]
    assert trace.sql("select rank from processes").rows() == [(3,)]
    assert quality(trace)["left_out: user events"] == 1


def test_whole_call_paths_of_tau_are_a_tree(tmp_path: Path) -> None:
    rows = (
        "main|1|2|1|10|T",
        "f|3|1|5|8|T",
        "g|4|0|4|4|T",
        "main => f|3|1|5|8|C",
        "main => g|1|0|1|1|C",
        "main => f => g|3|0|3|3|C",
    )
    trace = strobe.open(text_file(tmp_path / "x", tau(*rows)))
    assert by_path(trace, "count, total_ns, self_ns") == {
        "main": [1, 10_000, 1_000],
        "main;f": [3, 8_000, 5_000],
        "main;g": [1, 1_000, 1_000],
        "main;f;g": [3, 3_000, 3_000],
    }


def test_call_paths_of_tau_that_are_cut_are_callers(tmp_path: Path) -> None:
    rows = (
        "main|1|2|1|10|T",
        "f|3|1|5|8|T",
        "g|4|0|4|4|T",
        "main => f|3|1|5|8|C",
        "f => g|3|0|3|3|C",
        "main => g|1|0|1|1|C",
    )
    trace = strobe.open(text_file(tmp_path / "x", tau(*rows)))
    assert by_path(trace) == {"main": 1_000, "f": 5_000, "g": 4_000}
    edges = trace.sql("select caller, callee, calls, total_ns, self_ns from call_edges order by all").rows()
    assert edges == [("f", "g", 3, 3_000, 3_000), ("main", "f", 3, 8_000, 5_000), ("main", "g", 1, 1_000, 1_000)]


def test_samples_of_tau_do_not_add_to_the_time_of_functions(tmp_path: Path) -> None:
    sampled = ".TAU application => [CONTEXT] .TAU application"
    rows = (
        ".TAU application|1|0|77|77|T",
        "[CONTEXT] .TAU application|3|0|0|90|S",
        "[SAMPLE] f [{a.cc} {10}]|2|0|60|60|S",
    )
    paths = (
        f"{sampled}|3|0|0|90|S",
        f"{sampled} => [SAMPLE] f [{{a.cc}} {{10}}]|2.4|0|60|60|S",
        f"{sampled} => [SAMPLE] g|1|0|30|30|S",
    )
    trace = strobe.open(text_file(tmp_path / "profile.0.0.0", tau(*rows, *paths)))
    columns = "thread, path, count, total_ns, self_ns"
    found = trace.sql(f"{PATHS} select {columns} from statistics join chain using (call_path) order by all").rows()
    assert found == [
        ("thread 0", ".TAU application", 1, 77_000, 77_000),
        ("thread 0, samples", "[CONTEXT] .TAU application", 3, 90_000, 0),
        ("thread 0, samples", "[CONTEXT] .TAU application;[SAMPLE] f", 2, 60_000, 60_000),
        ("thread 0, samples", "[CONTEXT] .TAU application;[SAMPLE] g", 1, 30_000, 30_000),
    ]


def test_a_folder_of_tau_is_one_trace_with_ranks_and_threads(tmp_path: Path) -> None:
    for node, thread in ((0, 0), (0, 1), (0, 10), (0, 2), (1, 0), (1, 1)):
        text_file(tmp_path / f"profile.{node}.0.{thread}", tau(f"work|{thread + 1}|0|{node + 1}|{node + 1}|T"))
    trace = strobe.open(tmp_path)
    of_rank = "statistics s join locations l using (location) join processes p on l.process = p.process"
    rows = trace.sql(f"select rank, s.thread, count, total_ns from {of_rank} order by rank, count").rows()
    assert rows == [
        (0, "thread 0", 1, 1_000),
        (0, "thread 1", 2, 1_000),
        (0, "thread 2", 3, 1_000),
        (0, "thread 10", 11, 1_000),
        (1, "thread 0", 1, 2_000),
        (1, "thread 1", 2, 2_000),
    ]
    one = strobe.open(tmp_path / "profile.0.0.2")
    assert one.sql("select thread, count from statistics").rows() == [("thread 2", 3)]


def test_profiles_of_tau_of_other_metrics_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "MULTI__PAPI_TOT_CYC"
    folder.mkdir()
    path = text_file(folder / "profile.0.0.0", tau("f|3|0|5|8|T", metric="_MULTI_PAPI_TOT_CYC"))
    trace = strobe.open(path)
    metrics = trace.sql("select metric, unit, self_value, total_value from path_metrics").rows()
    assert metrics == [("PAPI_TOT_CYC", "events", 5.0, 8.0)]
    assert quality(trace)["weights_are_no_time"] == 1
    (tmp_path / "MULTI__TIME").mkdir()
    text_file(tmp_path / "MULTI__TIME" / "profile.0.0.0", tau("f|3|0|5|8|T"))
    with pytest.raises(FormatError, match="several profiles of node 0: open one of the folders"):
        strobe.open(tmp_path)


def test_damaged_profiles_of_tau_are_counted(tmp_path: Path) -> None:
    whole = tau("f|3|0|5|8|T", "g|x|0|5|8|T", "h|1e99|0|5|8|T", "k|1|0|5|8|T", count=5)
    trace = strobe.open(text_file(tmp_path / "profile.0.0.0", whole))
    assert by_path(trace) == {"f": 5_000, "k": 5_000}
    assert (quality(trace)["lines_not_understood"], quality(trace)["truncated"]) == (2, 1)
