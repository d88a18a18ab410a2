"""What the drawer of the timeline asks about a stretch of time, against a brute force over every nanosecond."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from strobe.errors import InconclusiveError
from strobe.server.spans.idle_gaps import gap
from strobe.server.time_range.flat_profile import flat_profile
from strobe.server.time_range.process_bars import bars
from strobe.server.time_range.region_durations import durations, histogram
from strobe.server.time_range.spans_in_range import visible_spans
from strobe.server.time_range.wall_time import wall_time
from strobe.server.trace_context import TraceContext
from tests.unit.hand_made import Span, make_trace, span, train_steps
from tests.unit.test_server import page_of

END = 600
NAMES = ("main", "aten::mm", "load", "aten::relu", "wait")


def nested(chance: random.Random, start: int, end: int, depth: int = 0) -> list[Span]:
    """Spans one after the other, some with others inside."""
    found, at = list[Span](), start
    while at < end:
        begin = at + chance.randrange(20)
        until = min(end, begin + 1 + chance.randrange(60))
        if begin >= until:
            break
        inside = nested(chance, begin, until, depth + 1) if depth < 2 and chance.random() < 0.6 else []
        found.append(span(chance.choice(NAMES), begin, until, *inside))
        at = until
    return found


def flat(spans: list[Span], depth: int = 0) -> list[tuple[Span, int]]:
    return [each for one in spans for each in ((one, depth), *flat(list(one.children), depth + 1))]


@pytest.fixture(scope="module")
def processes() -> list[dict[str, list[Span]]]:
    chance = random.Random(5)
    return [{"main": nested(chance, 0, END), "helper": nested(chance, 0, END)} for _ in range(3)]


@pytest.fixture(scope="module")
def facts(processes: list[dict[str, list[Span]]]) -> TraceContext:
    return TraceContext(make_trace(*processes), Path())


def innermost(spans: list[Span], time_ns: int) -> str | None:
    running = [(depth, one.name) for one, depth in flat(spans) if one.start_ns <= time_ns < one.end_ns]
    return max(running)[1] if running else None


def exclusive(spans: list[Span], start: int, end: int) -> Counter[str]:
    return Counter(name for time in range(start, end) if (name := innermost(spans, time)))


@pytest.mark.parametrize("window", [(0, END), (37, 222), (100, 101)])
def test_flat_profile_is_exact(
    facts: TraceContext, processes: list[dict[str, list[Span]]], window: tuple[int, int]
) -> None:
    start, end = window
    threads = [spans for process in processes for spans in process.values()]
    own = sum((exclusive(spans, start, end) for spans in threads), Counter[str]())
    count = Counter(one.name for spans in threads for one, _ in flat(spans) if start <= one.start_ns < end)
    table = flat_profile(facts, start, end)
    rows = {row["name"]: row for row in table.to_pylist()}
    assert {name: row["exclusive_ns"] for name, row in rows.items()} == {name: own[name] for name in {*count, *own}}
    assert Counter({name: row["executions"] for name, row in rows.items()}) == count
    assert sum(row["share"] for row in rows.values()) == pytest.approx(1)
    assert all(
        row["mean_ns"] == pytest.approx(row["exclusive_ns"] / row["executions"])
        for row in rows.values()
        if row["executions"]
    )
    assert table["exclusive_ns"].to_pylist() == sorted(table["exclusive_ns"].to_pylist(), reverse=True)
    assert table.schema.field("exclusive_ns").metadata[b"unit"] == b"ns"


@pytest.mark.parametrize("by", ["name", "group", "caller", "thread", "process"])
def test_spans_of_a_stretch_are_sorted_by_any_column(
    facts: TraceContext, processes: list[dict[str, list[Span]]], by: str
) -> None:
    start, end = 37, 222
    group = dict(zip(facts.names.names, facts.names.groups, strict=True))
    own, lengths = Counter[str](), dict[str, list[int]]()

    def visit(spans: list[Span], caller: str, place: tuple[str, str]) -> None:
        for one in spans:
            key = {"name": one.name, "group": group[one.name], "caller": caller}.get(by, "")
            key = key or (place[0] if by == "process" else " · ".join(place))
            children = sum(max(0, min(end, each.end_ns) - max(start, each.start_ns)) for each in one.children)
            own[key] += max(0, min(end, one.end_ns) - max(start, one.start_ns)) - children
            if start <= one.start_ns < end:
                lengths.setdefault(key, []).append(one.end_ns - one.start_ns)
            visit(list(one.children), one.name, place)

    for number, process in enumerate(processes):
        for thread, spans in process.items():
            visit(spans, "nothing", (f"pid {100 + number}", thread))
    rows = {row["name"]: row for row in flat_profile(facts, start, end, by).to_pylist()}
    assert {name: row["exclusive_ns"] for name, row in rows.items() if row["exclusive_ns"]} == {
        name: ns for name, ns in own.items() if ns
    }
    told = {
        name: (row["executions"], row["shortest_ns"], row["average_ns"], row["longest_ns"])
        for name, row in rows.items()
        if row["executions"]
    }
    assert told == {
        name: (len(each), min(each), pytest.approx(np.mean(each)), max(each)) for name, each in lengths.items()
    }


def test_spans_are_sorted_by_the_module_and_the_step_they_run_in() -> None:
    model = span("nn.Module: Net", 10, 90, span("nn.Module: Linear", 20, 60, span("aten::mm", 30, 40)))
    context = TraceContext(make_trace({"main": [span("main", 0, 100, model)]}), Path())
    rows = {row["name"]: row["exclusive_ns"] for row in flat_profile(context, 0, 100, "module").to_pylist()}
    assert rows == {"outside of modules": 20, "Net": 40, "Linear": 40}
    steps = train_steps(20)
    context = TraceContext(make_trace({"main": steps}), Path())
    found = flat_profile(context, 0, steps[-1].end_ns, "step").to_pylist()
    lengths = {row["name"]: row["exclusive_ns"] for row in found}
    assert len(lengths) >= 19
    of_5 = [each for each in context.steps.table(100).to_pylist() if each["step"] == 5]
    inside = sum(
        max(0, min(one.end_ns, of_5[0]["start_ns"] + of_5[0]["duration_ns"]) - max(one.start_ns, of_5[0]["start_ns"]))
        for one in steps
    )
    assert lengths["step 5"] == inside


def test_too_many_spans_are_refused_with_a_sentence(facts: TraceContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strobe.server.time_range.flat_profile._MOST_READ", 3)
    assert flat_profile(facts, 0, END)["longest_ns"].null_count == len(flat_profile(facts, 0, END))
    with pytest.raises(InconclusiveError, match="too many to sort by caller"):
        flat_profile(facts, 0, END, "caller")


def test_wall_time_is_the_mean_of_main_threads_and_of_gpus_and_adds_up() -> None:
    """Of 100 ns: rank a computes 40 and receives 30, b computes 60. GPU 0 has 50 of kernels, 20 of NCCL, 5 beside."""
    gpu = [
        span("gemm", 0, 50, paradigm="cuda", role="kernel"),
        span("ncclKernel_AllReduce", 60, 80, paradigm="cuda", role="kernel"),
    ]
    beside = [span("copy", 45, 65, paradigm="cuda", role="copy"), span("gemm", 70, 75, paradigm="cuda", role="kernel")]
    a = {
        "main": [span("aten::mm", 0, 40), span("MPI_Recv", 50, 80, paradigm="mpi", role="p2p")],
        "helper": [span("work", 20, 45)],
        "stream 7": gpu,
        "stream 8": beside,
    }
    b = {"main": [span("aten::mm", 0, 60)]}
    found = wall_time(TraceContext(make_trace(a, b), Path()), 0, 100)
    host = {part["name"]: part["share"] for part in found["host"]}
    assert host == pytest.approx({"compute": 0.5, "communication": 0.15, "idle": 0.35})
    assert [(each["name"], each["share"]) for each in found["others"]] == [("pid 100 · helper", 0.25)]
    shares = {part["name"]: part["share"] for part in found["gpu"]}
    # 50 + 5 of kernels; NCCL alone for 15; the copy alone from 50 to 60; nothing from 80 on.
    assert shares == pytest.approx({"computation": 0.55, "communication": 0.15, "copy": 0.1, "idle": 0.2})
    assert (found["main_threads"], found["gpus"]) == (2, 1)
    assert found["host_communication"] == pytest.approx(0.15)
    assert (found["gpu_communication"], found["hidden_communication"]) == pytest.approx((0.2, 0.05))


@pytest.mark.parametrize("by", ["group", "region"])
def test_bars_are_the_exclusive_time_of_each_process(
    facts: TraceContext, processes: list[dict[str, list[Span]]], by: str
) -> None:
    group = dict(zip(facts.names.names, facts.names.groups, strict=True))
    found = bars(facts, 50, 400, by=by)
    assert found["processes"] == 3
    for bar, process in zip(found["bars"], processes, strict=True):
        own = sum((exclusive(spans, 50, 400) for spans in process.values()), Counter[str]())
        wanted = Counter[str]()
        for name, ns in own.items():
            wanted[group[name] if by == "group" else name] += ns
        told = {part["name"]: ns for part, ns in zip(found["parts"], bar["ns"], strict=True) if ns}
        assert told == dict(wanted)


def test_clusters_say_what_their_ranks_do_differently() -> None:
    def rank(load: int) -> dict[str, list[Span]]:
        return {"main": [span("load", 0, load, role="data"), span("aten::mm", load, 1000)]}

    slow = {2, 5}
    context = TraceContext(make_trace(*(rank(700 if at in slow else 100) for at in range(8))), Path())
    found = bars(context, 0, 1000)
    assert [(each["size"], each["members"]) for each in found["clusters"]] == [(6, [0, 1, 3, 4, 6, 7]), (2, [2, 5])]
    assert [bar["cluster"] for bar in found["bars"]] == [int(at in slow) for at in range(8)]
    assert bars(context, 0, 1000, limit=0) == {**found, "bars": []}
    differs = {each["name"]: (each["mean_ns"], each["others_ns"]) for each in found["clusters"][1]["differs"]}
    assert differs == {"load": (700, 100), "aten::mm": (300, 900)}
    shares = dict(zip((part["name"] for part in found["parts"]), found["clusters"][1]["ns"], strict=True))
    assert shares == {"data": 700, "compute": 300}


@pytest.mark.parametrize("window", [(0, END), (90, 310)])
def test_durations_are_those_of_all_executions_that_begin_there(
    facts: TraceContext, processes: list[dict[str, list[Span]]], window: tuple[int, int]
) -> None:
    spans = [one for process in processes for thread in process.values() for one in flat(thread)]
    of_name = [(one, depth) for one, depth in spans if one.name == "load" and window[0] <= one.start_ns < window[1]]
    lengths = sorted(one.end_ns - one.start_ns for one, _ in of_name)
    found = durations(facts, "load", *window, 10, 30)
    assert (found["count"], found["total_ns"], found["read_share"]) == (len(lengths), sum(lengths), 1)
    assert found["median_ns"] == np.median(lengths)
    edges, counts = found["edges_ns"], found["counts"]
    assert (edges[0], sum(counts)) == (lengths[0], len(lengths))
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        assert count == sum(low <= length < high for length in lengths)
    chosen = [(one.end_ns - one.start_ns, one.start_ns, depth) for one, depth in of_name]
    chosen = [each for each in chosen if 10 <= each[0] <= 30]
    assert found["chosen"] == len(chosen)
    listed = [(each["duration_ns"], each["start_ns"], each["depth"]) for each in found["spans"]]
    assert sorted(listed) == sorted(chosen)
    assert [each[0] for each in listed] == sorted((each[0] for each in chosen), reverse=True)


def test_of_too_many_spans_even_parts_of_the_time_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strobe.server.time_range.region_durations._MOST_READ", 1000)
    monkeypatch.setattr("strobe.server.time_range.region_durations._PIECE", 50)
    beats = [span("beat", at * 100, at * 100 + 10 + at % 5) for at in range(10_000)]
    found = durations(TraceContext(make_trace({"main": beats}), Path()), "beat", 0, 1_000_000)
    assert found["read_share"] == pytest.approx(0.1, rel=0.01)
    assert found["count"] == pytest.approx(1000, rel=0.1)
    assert found["executions"] == 10_000, "how many there are is exact"
    many = TraceContext(make_trace(*({"main": beats[:100]} for _ in range(60))), Path())
    found = durations(many, "beat", 0, 10_000)
    assert found["executions"] == 6000
    assert found["count"] == pytest.approx(6000 * found["read_share"], rel=0.15)
    assert 0.1 < found["read_share"] < 0.2, "of twenty of the processes a half"


def test_histograms_of_nothing_and_of_equal_lengths() -> None:
    assert histogram(np.zeros(0, dtype=np.int64))[1].tolist() == []
    edges, counts = histogram(np.array([7, 7, 7]))
    assert (edges.tolist(), counts.tolist()) == ([7, 8], [3])
    assert histogram(np.array([0, 10**9]))[1].sum() == 2


def test_gaps_of_a_thread_lie_between_its_outermost_spans(
    facts: TraceContext, processes: list[dict[str, list[Span]]]
) -> None:
    thread = processes[0]["main"]
    between = [(a.end_ns, b.start_ns) for a, b in pairwise(thread) if b.start_ns > a.end_ns]
    for time in range(thread[0].start_ns, thread[-1].end_ns):
        wanted = next((each for each in between if each[0] <= time < each[1]), None)
        found = gap(facts, 0, "at", time, 0, 1, 0)
        assert (found and (found["start_ns"], found["end_ns"])) == wanted
    first = gap(facts, 0, "at", between[0][0], 0, 1, 0)
    walked = [cast("dict[str, Any]", first)]
    for _ in between[1:]:
        walked.append(cast("dict[str, Any]", gap(facts, 0, "next", walked[-1]["start_ns"], 0, 1, 1)))
    assert [(each["start_ns"], each["end_ns"]) for each in walked] == between
    assert gap(facts, 0, "next", between[-1][0], 0, 1, 1) is None
    back = cast("dict[str, Any]", gap(facts, 0, "previous", between[-1][0], 0, 1, 1))
    assert (back["start_ns"], back["end_ns"]) == between[-2]
    lengths = sorted((b - a for a, b in between), reverse=True)
    for number, length in enumerate(lengths):
        longest = cast("dict[str, Any]", gap(facts, 0, "longest", 0, thread[0].start_ns, thread[-1].end_ns, 0, number))
        assert longest["end_ns"] - longest["start_ns"] == length
        assert longest["before"]["start_ns"] + longest["before"]["duration_ns"] == longest["start_ns"]
        assert longest["after"]["start_ns"] == longest["end_ns"]


def test_spans_in_view_are_all_of_them_or_the_longest(
    facts: TraceContext, processes: list[dict[str, list[Span]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [
        (location, one.start_ns, one.end_ns - one.start_ns, depth, one.name)
        for location, name in enumerate(("main", "helper"))
        for one, depth in flat(processes[0][name])
        if one.start_ns < 300 and one.end_ns > 100
    ]
    columns = ("location", "start_ns", "duration_ns", "depth", "name")

    def listed() -> list[tuple[object, ...]]:
        rows = visible_spans(facts, [0, 1], 100, 300).to_pylist()
        return [tuple(row[name] for name in columns) for row in rows]

    assert listed() == wanted
    monkeypatch.setattr("strobe.server.time_range.spans_in_range.MOST_ROWS", 5)
    lengths = sorted((each[2] for each in wanted), reverse=True)
    assert sorted((cast(int, each[2]) for each in listed()), reverse=True) == lengths[:5]
    assert visible_spans(facts, [0, 1], 100, 300).schema.metadata[b"count"] == str(len(wanted)).encode()


def test_a_gap_of_a_thread_has_what_others_did_meanwhile() -> None:
    kernel = span("gemm", 20, 60, paradigm="cuda", role="kernel")
    threads = {
        "main": [span("load", 0, 10), span("aten::mm", 80, 100)],
        "helper": [span("outer", 0, 50, span("inner", 15, 45))],
        "idle": [span("before", 0, 5)],
        "stream 7": [kernel],
    }
    found = cast("dict[str, Any]", gap(TraceContext(make_trace(threads), Path()), 0, "at", 40, 0, 1, 0))
    assert (found["start_ns"], found["end_ns"], found["cause"]) == (10, 80, None)
    told = [(each["thread"], each["busy_ns"], each["name"], each["ns"]) for each in found["meanwhile"]]
    assert sorted(told) == [("helper", 40, "inner", 30), ("stream 7", 40, "gemm", 40)]


@pytest.mark.parametrize(
    "question",
    ["window/profile?start_ns=5&end_ns=5", "window/bars?start_ns=0&end_ns=9&by=size", "gap?location=0&way=up",
     "window/bars?start_ns=0&end_ns=9&clusters=17", "links?location=9&start_ns=0&depth=0"],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused_with_a_sentence(tmp_path: Path, question: str) -> None:
    answer = page_of({"main": [span("step", 0, 100)]}, folder=tmp_path).get(question)
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_the_page_gets_what_it_asks_for(tmp_path: Path) -> None:
    page = page_of({"main": [span("step", 0, 100), span("step", 200, 300)]}, folder=tmp_path)
    assert page.table("window/profile?start_ns=0&end_ns=300")["executions"].to_pylist() == [2]
    assert cast(Any, page.json("window/bars?start_ns=0&end_ns=300"))["bars"][0]["ns"] == [200]
    assert cast(Any, page.json("window/durations?start_ns=0&end_ns=300&name=step"))["count"] == 2
    assert cast(Any, page.json("gap?location=0&time_ns=150"))["start_ns"] == 100
    assert page.json("gap?location=0&time_ns=50") is None
    assert page.json("links?location=0&start_ns=0&depth=0") == {"links": [], "count": 0, "inside": True, "left_out": []}
    assert page.table("window/spans?locations=0&start_ns=0&end_ns=300")["name"].to_pylist() == ["step", "step"]
