"""Ranges projected onto the GPU, as Nsight Systems defines it: by hand, and by plain SQL on its own file."""

import sqlite3

import pytest

from tests.deep.kineto import US, call, event, kernel, operator, profile
from tests.public import FOLDER


def annotation(name, start_us, duration_us, thread=1):
    return event("user_annotation", name, start_us, duration_us, 100, thread)


def test_a_range_is_projected_from_the_first_start_to_the_last_end_of_what_it_launched(tmp_path):
    trace = profile(
        tmp_path,
        annotation("forward", 0, 50),
        annotation("layer", 10, 20),
        operator("aten::mm", 12, 10),
        call(13, 2, correlation=1),
        call(35, 2, correlation=2),
        annotation("layer", 60, 10),
        call(62, 2, correlation=3),
        call(62, 2, correlation=4, thread=2),  # at the same time on another thread: in no range
        annotation("layer", 80, 5),
        kernel("a", 20, 30, correlation=1),
        kernel("b", 55, 5, correlation=2),
        kernel("c", 70, 7, correlation=3),
        kernel("d", 90, 9, correlation=4),
    )
    rows = {row["name"]: row for row in trace.ranges().to_arrow().to_pylist()}
    facts = ("calls", "total_ns", "projected", "projected_ns", "min_ns", "max_ns", "activities")
    assert tuple(rows["forward"][fact] for fact in facts) == (1, 50 * US, 1, 40 * US, 40 * US, 40 * US, 2)
    assert tuple(rows["layer"][fact] for fact in facts) == (3, 35 * US, 2, 37 * US, 7 * US, 30 * US, 2)
    assert (rows["layer"]["avg_ns"], rows["layer"]["median_ns"]) == (18_500, 18_500)
    assert rows["layer"]["std_ns"] == pytest.approx(23 * US / 2**0.5)


def test_without_ranges_or_gpus_a_sentence_says_so(tmp_path):
    assert "no ranges" in profile(tmp_path, operator("aten::mm", 0, 5)).ranges().note
    table = profile(tmp_path, annotation("forward", 0, 50)).ranges()
    assert "no GPU did anything" in table.note
    assert table.column("total_ns") == [50 * US]


def test_plain_sql_on_a_file_of_nsight_systems_says_the_same(public):
    name = "nsys/saxpy-mpi-cuda_nsys_perlmutter0.sqlite"
    ours = {row["name"]: row for row in public(name).ranges().to_arrow().to_pylist()}
    with sqlite3.connect(f"file:{FOLDER / name}?mode=ro&immutable=1", uri=True) as db:
        tables = {row[0] for row in db.execute("select name from sqlite_master where type = 'table'")}
        work = " union all ".join(
            f"select start, end, correlationId, globalPid from CUPTI_ACTIVITY_KIND_{kind}"
            for kind in ("KERNEL", "MEMCPY", "MEMSET")
            if f"CUPTI_ACTIVITY_KIND_{kind}" in tables
        )
        rows = db.execute(
            f"""
            with work as ({work}), ranges as (
              select n.rowid id, coalesce(n.text, s.value) name, n.start, n.end, n.globalTid
              from NVTX_EVENTS n left join StringIds s on s.id = n.textId where n.eventType = 59 and n.end is not null)
            select r.name, count(distinct w.start), max(w.end) - min(w.start)
            from ranges r
            join CUPTI_ACTIVITY_KIND_RUNTIME c on c.globalTid = r.globalTid and c.start between r.start and r.end
            join work w on w.correlationId = c.correlationId and w.globalPid / 0x1000000 = c.globalTid / 0x1000000
            group by r.name, r.id
            """
        ).fetchall()
    theirs = {}
    for range_name, activities, projected in rows:
        known = theirs.get(range_name, (0, 0, 0))
        theirs[range_name] = (known[0] + 1, known[1] + projected, known[2] + activities)
    assert theirs
    assert {
        key: (ours[key]["projected"], ours[key]["projected_ns"], ours[key]["activities"]) for key in theirs
    } == theirs
