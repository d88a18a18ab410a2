"""CPU time by kind, from readings that are summed up by hand."""

import pytest

import strobe
from strobe.present.summary import summarise
from tests.unit.hand_made import MS, HandMadeProcess, make_trace, span

NO_LOCATION = 2**32 - 1
KINDS = ("user", "system", "io_wait", "waiting", "stolen", "idle")


def readings(number, name, values, *, times=(200, 400, 600, 800), location=NO_LOCATION):
    """Readings in cores, at times in ms."""
    return {
        "metric": number, "name": name, "unit": "cores", "location": location,
        "time_ns": [each * MS for each in times], "value": values,
    }  # fmt: skip


def program(**more):
    """A process that may use 4 cores of 8, and is read every 200 ms from 0 on."""
    every = (0, 200, 400, 600, 800)
    metrics = [
        readings(0, "cores of the process", [4] * 5, times=every),
        readings(1, "cores of the machine", [8] * 5, times=every),
        readings(2, "cpu user", [1, 1, 0.5, 0.5]),
        readings(3, "cpu system", [0, 0.5, 0.5, 0]),
        readings(4, "machine user", [2, 2, 2, 2]),
        readings(5, "machine system", [1, 1, 1, 1]),
        readings(6, "machine I/O wait", [0, 0, 2, 2]),
        readings(7, "machine idle", [5, 5, 3, 2]),
        readings(8, "machine stolen", [0, 0, 0, 1]),
        readings(9, "cpu main thread", [1, 1, 0.5, 0.5]),
        readings(10, "system time main thread", [0, 0.5, 0.25, 0]),
        readings(11, "main thread waits for a core", [0, 0, 0.5, 0.25]),
        # A group whose threads are not there from the beginning.
        readings(12, "cpu compute threads", [0, 0.5, 0.5, 0]),
        readings(13, "system time compute threads", [0, 0.25], times=(400, 600)),
        readings(14, "compute threads wait for a core", [1.5, 2], times=(400, 600)),
        readings(15, "strobe waits for a core", [1, 1, 1, 1]),
        readings(16, "cpu", [1, 1, 0.5, 0.5], location=0),
        readings(17, "system time", [0, 0.5, 0.25, 0], location=0),
        readings(18, "waits for a core", [0, 0, 0.5, 0.25], location=0),
    ]
    return make_trace(HandMadeProcess({"MainThread": [span("main", 0, 800 * MS)]}, metrics=metrics, **more))


def found(trace, **options):
    """Rows of the answer by what they are of, their times in ms."""
    return {
        (row["what"], row["name"]): {kind: row[f"{kind}_ns"] and row[f"{kind}_ns"] / MS for kind in KINDS} | row
        for row in trace.cpu(**options).to_arrow().to_pylist()
    }


def times(row):
    return [row[kind] for kind in KINDS]


def test_kinds_of_time_are_the_sums_of_their_readings():
    rows = found(program())
    (machine,) = (row for (what, _), row in rows.items() if what == "machine")
    assert times(machine) == [1600, 800, 800, None, 200, 3000]
    assert sum(machine[f"{kind}_share"] or 0 for kind in KINDS) == pytest.approx(1)
    process = rows["process", ""]
    # Waits of the main thread, 150 ms, and of threads that compute, 700 ms, but not of strobe.
    assert times(process) == [600, 200, None, 850, None, 4 * 800 - 800]
    assert (process["cores"], process["duration_ns"], process["readings"]) == (4, 800 * MS, 4)
    assert process["waiting_share"] == pytest.approx(850 / 3200)


def test_idle_time_of_a_thread_is_when_it_neither_ran_nor_waited_for_a_core():
    thread = found(program())["thread", "MainThread"]
    assert times(thread) == [450, 150, None, 150, None, 800 - 600 - 150]


def test_groups_of_threads_have_no_idle_time_because_their_number_is_unknown():
    rows = found(program())
    assert times(rows["threads", "compute threads"])[1:] == [50, None, 700, None, None]
    assert rows["threads", "compute threads"]["waiting_share"] == pytest.approx(700 / 3200)
    assert ("threads", "python threads") not in rows


def test_what_is_much_is_a_fact_of_the_summary():
    facts = {fact.name: fact.value for fact in summarise(program()).facts}
    assert facts["system time"] == "25 % of the CPU time"
    assert facts["waiting for a core"] == "850.0 ms, beside 800.0 ms of CPU time"
    assert facts["I/O wait"] == "12 % of the cores of the machine"  # 800 of 6400 ms
    assert "stolen" not in facts  # 200 of 6400 ms


def stepped(lengths_ms, kinds):
    """Steps by length and kind, read every 200 ms: a core of user time in those of kind `a`, of system time else."""
    spans, now, at = [], 0, []
    for length, kind in zip(lengths_ms, kinds, strict=True):
        inside = span(kind, now * MS + 1, (now + length) * MS - 1)
        spans.append(span("strobe.step", now * MS, (now + length) * MS, inside, paradigm="user", role="loop"))
        at += [(now, now + length, kind)]
        now += length
    every = range(0, now + 1, 200)
    user = [sum(max(0, min(e, t) - max(b, t - 200)) for b, e, kind in at if kind == "a") / 200 for t in every][1:]
    metrics = [
        readings(0, "cores of the process", [1] * len(every), times=every),
        readings(1, "cpu user", user, times=every[1:]),
        readings(2, "cpu system", [1 - each for each in user], times=every[1:]),
    ]
    return make_trace(HandMadeProcess({"MainThread": spans}, metrics=metrics))


def test_readings_on_the_border_of_two_classes_are_of_neither():
    trace = stepped([1000, 1100] * 6, "ab" * 6)
    rows = {row["class"]: row for row in trace.cpu(by="class").to_arrow().to_pylist()}
    assert len(rows) == 2
    for name, row in rows.items():
        assert (row["user_share"], row["system_share"]) == ((1, 0) if name.endswith("a") else (0, 1))
        assert 0.5 < row["covered"] < 1
    for row in trace.cpu(by="step").to_arrow().to_pylist():
        assert row["readings"] >= 3
        assert row["user_share"] in (0, 1)


def test_short_steps_of_two_classes_in_turn_have_no_figures_but_a_reason():
    table = stepped([50, 60] * 60, "ab" * 60).cpu(by="class")
    assert not len(table)
    assert "no three readings lie in the steps of any class" in table.note


def test_a_trace_without_user_and_system_time_has_a_reason():
    metrics = [readings(0, "cpu main thread", [1, 1, 1, 1])]
    table = make_trace(HandMadeProcess({"MainThread": [span("main", 0, 10)]}, metrics=metrics)).cpu()
    assert not len(table)
    assert "record the program again" in table.note
    assert isinstance(table, strobe.Table)
