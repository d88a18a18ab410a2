"""Cube4 profiles of ours as pycubexr (the reader of the Extra-P project) sees them: every value of every call path."""

import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import strobe
from tests.formats.test_export_otf2 import FOLDED, ROOT, STROBE, chrome, everything
from tests.formats.test_profiles import PATHS, span, write_chrome
from tests.formats.test_profiles_cube import cubex

pycubexr = pytest.importorskip("pycubexr")
pytestmark = pytest.mark.filterwarnings("ignore")
SECOND = 10**9
Values = Counter[tuple[int, str]]  # by location and call path


def seen(path: Path) -> tuple[dict[str, Values], dict[str, list[float]], list[tuple[str, str, str]]]:
    """Visits, and exclusive and inclusive nanoseconds; those of the program itself; the locations, and whose they are.

    The program itself is a root that is not in the trace.
    """
    found: dict[str, Values] = {"visits": Counter(), "self_ns": Counter(), "total_ns": Counter()}
    program: dict[str, list[float]] = {}
    with pycubexr.CubexParser(path) as cube:
        visits, time = (cube.get_metric_values(cube.get_metric_by_name(name)) for name in ("visits", "time"))
        assert visits.metric.units == "occ"
        assert time.metric.units == "sec"
        paths: dict[int, str] = {}
        for node in cube.all_cnodes():  # parents first
            region = cube.get_region(node)
            values = {
                "visits": visits.cnode_values(node).tolist(),
                "self_ns": [value * SECOND for value in time.cnode_values(node).tolist()],
                "total_ns": [value * SECOND for value in time.cnode_values(node, convert_to_inclusive=True).tolist()],
            }
            if region.role == "artificial":
                program, paths[node.id] = values, ""
                continue
            above = paths[node.parent.id] if node.parent else ""
            paths[node.id] = f"{above};{region.name}" if above else region.name
            for name, each in values.items():
                for location, value in enumerate(each):
                    found[name][location, paths[node.id]] += round(value)
        system = cube._anchor_result.system_tree_nodes[0]
        groups = [(host, group) for host in system._system_tree_node_children for group in host.all_location_groups()]
        places = [(host.name, group.name, each.name) for host, group in groups for each in group.all_locations()]
        assert len(places) == len(cube.get_locations())
    return found, program, places


def recorded(trace: strobe.Trace, value: str) -> Values:
    rows = trace.sql(
        f"{PATHS} select location, path, sum({value})::bigint from totals join chain using (call_path) group by all"
    )
    return +Counter({(location, path): value for location, path, value in rows.rows()})


@pytest.fixture
def timed(tmp_path: Path) -> strobe.Trace:
    """Spans of two threads; one call path is in both."""
    made = [
        *(span("outer", 100 * i, 60, tid=1) for i in range(3)),
        *(span("inner", 100 * i + 10, 20.125, tid=1) for i in range(3)),
        span("inner", 0, 7, tid=2),
        span("same;start", 200, 5, tid=2),
        span("(odd) «name»", 200, 5, tid=2),
    ]
    return strobe.open(write_chrome(tmp_path / "timed.json", made))


def check(trace: strobe.Trace, path: Path) -> dict[str, list[float]]:
    """Hold everything in a file against the trace, whose processes are of one host; return the program's own values."""
    assert trace.export(path) == []
    found, program, places = seen(path)
    for name, column in ("visits", "count"), ("self_ns", "self_ns"), ("total_ns", "total_ns"):
        expected = recorded(trace, column)
        assert +found[name] == expected, name
        assert expected
    whose = "select host, l.name from locations l join processes using (process) order by location"
    known = [(host or "unknown host", location) for host, location in trace.sql(whose).rows()]
    assert [(host, location) for host, _, location in places] == known
    # Read again by strobe itself, nothing is missing, and nothing is added but the program.
    again = strobe.open(path)
    query = f"{PATHS} select path, sum(count)::bigint, sum(self_ns)::bigint from totals join chain using (call_path)"
    own = "" if not program else " where path like '%;%'"
    cut = "path" if not program else "substr(path, strpos(path, ';') + 1)"
    rows = again.sql(f"select {cut}, a, b from ({query} group by 1) as t(path, a, b){own}").rows()
    assert sorted(rows) == sorted(row for row in trace.sql(f"{query} group by 1").rows() if row[1] or row[2])
    return program


def test_every_value_is_that_of_the_profile(timed: strobe.Trace, tmp_path: Path) -> None:
    path = tmp_path / "t.cubex"
    program = check(timed, path)
    found, _, places = seen(path)
    first, second = (number for number, place in enumerate(places))
    # As the events of `timed` are: 3 of 60 us, with 20.125 us of another one inside.
    assert {key: value for key, value in found["total_ns"].items() if value} == {
        (first, "outer"): 180_000,
        (first, "outer;inner"): 60_375,
        (second, "inner"): 7_000,
        (second, "same;start"): 5_000,
        (second, "same;start;(odd) «name»"): 5_000,
    }
    assert found["self_ns"][first, "outer"] == 180_000 - 60_375
    assert found["visits"][first, "outer;inner"] == 3
    by_name = Counter[tuple[str, str]]()
    for column, values in ("calls", found["visits"]), ("self_ns", found["self_ns"]):
        for (_, chain), value in values.items():
            by_name[column, re.split(r";(?!start)", chain)[-1]] += value
    profile = timed.profile().to_arrow()
    assert profile.num_rows == 4
    for row in profile.to_pylist():
        assert (row["calls"], row["self_ns"]) == (by_name["calls", row["name"]], by_name["self_ns", row["name"]])
    # What it did between 0 and 260 us outside of its calls.
    assert program["visits"] == [1, 0]
    assert [round(value) for value in program["self_ns"]] == [80_000, 0]


def test_statistics_of_folded_steps_are_in_it(tmp_path: Path) -> None:
    command = [STROBE, "run", "--quiet", "--keep", "3", "-o", str(tmp_path / "folded.strobe"), str(FOLDED)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    trace = strobe.open(tmp_path / "folded.strobe")
    assert trace.folded_count > 0
    check(trace, tmp_path / "t.cubex")


def test_ranks_and_streams_are_those_of_the_job(tmp_path: Path) -> None:
    pytest.importorskip("otf2", reason="the official otf2 package is not installed")
    from tests.formats import otf2_archives as archives

    trace = strobe.open(archives.write(tmp_path / "first", archives.random_job(1), ranks=3))
    check(trace, tmp_path / "t.cubex")
    with pycubexr.CubexParser(tmp_path / "t.cubex") as cube:
        (machine,) = cube._anchor_result.system_tree_nodes
        (node,) = machine._system_tree_node_children
        groups = [(group.name, group.rank, group.type) for group in node.all_location_groups()]
        kinds = [each.type for each in cube.get_locations()]
    assert groups == [(f"MPI Rank {rank}", str(rank), "process") for rank in range(3)]
    rows = trace.sql("select kind from locations order by location").rows()
    assert kinds == ["gpu" if kind == "stream" else "thread" for (kind,) in rows]
    again = strobe.open(tmp_path / "t.cubex")
    assert again.sql("select rank from processes").rows() == [(0,), (1,), (2,)]
    kinds_of = "select distinct r.name, r.paradigm, r.role from regions r"
    assert set(again.sql(kinds_of).rows()) >= {("MPI_Send", "mpi", "p2p"), ("MPI_Allreduce", "mpi", "collective")}


def test_a_profile_with_one_root_gets_no_other(tmp_path: Path) -> None:
    trace = strobe.open(cubex(tmp_path / "first.cubex"))
    assert check(trace, tmp_path / "again.cubex") == {}
    # Its other metrics are there, too, but for the greatest time, which does not add up.
    metrics = "select metric, unit, self_value, total_value from path_metrics where metric = 'bytes_sent' order by all"
    assert strobe.open(tmp_path / "again.cubex").sql(metrics).rows() == trace.sql(metrics).rows()
    with pycubexr.CubexParser(tmp_path / "again.cubex") as cube:
        assert [metric.name for metric in cube.all_metrics()] == ["visits", "time", "bytes_sent"]


def test_names_may_be_anything(tmp_path: Path) -> None:
    events = [{**each, "name": '<a href="x">&amp; \x01\n'} for each in everything() if each["ph"] == "X"]
    trace = chrome(tmp_path / "t.json", events)
    trace.export(tmp_path / "t.cubex")
    with pycubexr.CubexParser(tmp_path / "t.cubex") as cube:
        names = {cube.get_region(node).name for node in cube.all_cnodes()}
    assert any(name.startswith('<a href="x">&amp; ') for name in names)


def test_samples_are_a_metric_and_no_time(tmp_path: Path) -> None:
    (tmp_path / "stacks.txt").write_text("main;work 5\nmain 2\n")
    strobe.open(tmp_path / "stacks.txt").export(tmp_path / "t.cubex")
    with pycubexr.CubexParser(tmp_path / "t.cubex") as cube:
        assert [metric.name for metric in cube.all_metrics()] == ["visits", "samples"]
