"""Questions that people ask about a run, with answers that were found without strobe's analyses.

Of profiles of PyTorch and Nsight Systems the truth comes from the file itself, by plain Python; of recorded runs, from
the program's text, or by DuckDB from the spans and messages as they were exported.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import pytest

pytest.importorskip("mcp")

import strobe
from tests import public
from tests.agents.agent import Agent, agent, unpacked

GOLDEN = ("mpi", "mpi-traffic", "gpu", "annotated", "training-kept")
PROFILES = (
    "kineto/alexnet_critical_path.json.gz",
    "kineto/simple_add_critical_path.json.gz",
    "kineto/ns_resolution.json.gz",
    "kineto/nccl_data.json.gz",
    "kineto/resnet50_loader_workers0.json.gz",
    "kineto/diff_control.json.gz",
)
NSYS = "nsys/saxpy-mpi-cuda_nsys_perlmutter0.sqlite"
calls: dict[str, int] = {}  # by question


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden traces, and the tables of each as Parquet."""
    folder = unpacked(tmp_path_factory.mktemp("golden"), *GOLDEN)
    for name in GOLDEN:
        strobe.open(folder / f"{name}.strobe").export(folder / "tables" / name, "parquet")
    return folder


@pytest.fixture(scope="module")
def one(exported: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """An agent that may ask about the golden traces and the public ones."""
    places = [exported, public.FOLDER] if public.are_here() else [exported]
    with agent(places, tmp_path_factory.mktemp("cache")) as found:
        yield found


@pytest.fixture
def asked(one: Agent, request: pytest.FixtureRequest) -> Iterator[Agent]:
    """The same agent; its calls are counted for the question."""
    before = one.calls
    yield one
    calls[request.node.name] = one.calls - before


# --- profiles of PyTorch: the truth is in the JSON --------------------------------------------------------------------

Event = dict[str, Any]


@cache
def events(name: str) -> list[Event]:
    """The events with a duration in a profile."""
    with gzip.open(public.FOLDER / name, "rt", encoding="utf-8") as stream:
        found = json.load(stream, parse_float=Decimal)
    return [each for each in found["traceEvents"] if each.get("ph") == "X"]


def of_kind(name: str, *kinds: str) -> list[Event]:
    """The events of some categories; older profiles begin them with a capital."""
    return [each for each in events(name) if str(each.get("cat", "")).lower() in kinds]


def ns(event: Event) -> int:
    return int(event["dur"] * 1000)


def correlation(event: Event) -> object:
    return event.get("args", {}).get("correlation")


def sums(found: list[Event]) -> Counter[str]:
    """Time by name."""
    total = Counter[str]()
    for each in found:
        total[each["name"]] += ns(each)
    return total


def which_kernel_takes_most(name: str, agent: Agent) -> tuple[object, object]:
    (row,) = agent.rows("ask", trace=name, analysis="kernels", columns="name,total_ns", sort="total_ns", top=1)
    ((kernel, total_ns),) = sums(of_kind(name, "kernel")).most_common(1)
    return (row["name"], int(row["total_ns"])), (kernel, total_ns)


def how_many_kernels_run_and_for_how_long(name: str, agent: Agent) -> tuple[object, object]:
    kernels = of_kind(name, "kernel")
    head = agent.ask("spans", trace=name, text="role:kernel", top=1).splitlines()[0]
    return head.partition(": ")[2], f"{len(kernels)} spans, {sum(map(ns, kernels))} ns together"


def how_long_is_the_longest_kernel(name: str, agent: Agent) -> tuple[object, object]:
    (row,) = agent.rows("spans", trace=name, text="role:kernel", top=1)
    return int(row["duration_ns"]), max(map(ns, of_kind(name, "kernel")))


def how_many_bytes_go_to_the_gpu(name: str, agent: Agent) -> tuple[object, object]:
    rows = agent.rows("ask", trace=name, analysis="copies")
    to_gpu = [each for each in of_kind(name, "gpu_memcpy", "memcpy") if "HtoD" in each["name"]]
    got = sum(int(row["size_bytes"]) for row in rows if row["kind"] == "HtoD")
    return got, sum(each["args"]["bytes"] for each in to_gpu)


def what_launched_the_longest_kernel(name: str, agent: Agent) -> tuple[object, object]:
    (row,) = agent.rows("spans", trace=name, text="role:kernel", top=1)
    (link,) = [line for line in agent.ask("span", trace=name, span=row["span"]).splitlines() if "(launch)" in line]
    kernels = of_kind(name, "kernel")
    most_ns = max(map(ns, kernels))
    longest = [each for each in kernels if ns(each) == most_ns]
    launched_by = {each["args"]["correlation"] for each in longest}
    calls = [each for each in of_kind(name, "cuda_runtime", "runtime") if correlation(each) in launched_by]
    truth = [(each["name"], f"duration_ns={ns(each)}") for each in calls]
    return (link.split()[4], link.split()[-1]) in truth, len(longest) == len(calls)


def which_operator_is_called_most(name: str, agent: Agent) -> tuple[object, object]:
    options = {"step": "all"}
    rows = agent.rows(
        "ask", trace=name, analysis="operators", options=options, sort="calls", columns="name,calls", top=1
    )
    counts = Counter(each["name"] for each in of_kind(name, "cpu_op", "operator"))
    ((_, most),) = counts.most_common(1)
    return (int(rows[0]["calls"]), counts[rows[0]["name"]]), (most, most)


def how_many_streams_have_kernels(name: str, agent: Agent) -> tuple[object, object]:
    (count,) = agent.sql(name, "select count(distinct location) from kernel_spans")
    return int(count), len({(each["pid"], each["tid"]) for each in of_kind(name, "kernel")})


def which_call_takes_the_host_longest(name: str, agent: Agent) -> tuple[object, object]:
    (row,) = agent.rows("ask", trace=name, analysis="calls", sort="total_ns", columns="name,total_ns,calls", top=1)
    calls = of_kind(name, "cuda_runtime", "runtime", "cuda_driver")
    ((call, total_ns),) = sums(calls).most_common(1)
    return (row["name"], int(row["total_ns"])), (call, total_ns)


OF_PROFILES = (
    which_kernel_takes_most,
    how_many_kernels_run_and_for_how_long,
    how_long_is_the_longest_kernel,
    how_many_bytes_go_to_the_gpu,
    what_launched_the_longest_kernel,
    which_operator_is_called_most,
    how_many_streams_have_kernels,
    which_call_takes_the_host_longest,
)


@public.needs_public_traces
@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("question", OF_PROFILES, ids=lambda each: each.__name__)
def test_a_profile(asked: Agent, question: Callable[[str, Agent], tuple[object, object]], name: str) -> None:
    got, truth = question(name, asked)
    assert got == truth


WITH_STEPS = tuple(name for name in PROFILES if "critical_path" not in name)


def marks(name: str) -> list[Event]:
    """The steps that the profiler marked on the host."""
    found = [each for each in events(name) if each["name"].startswith("ProfilerStep#")]
    return sorted((each for each in found if each.get("cat") != "gpu_user_annotation"), key=lambda each: each["ts"])


def how_many_steps_are_there(name: str, agent: Agent) -> tuple[object, object]:
    return len(agent.rows("steps", trace=name, top=100)), len(marks(name))


def how_long_is_the_longest_marked_step(name: str, agent: Agent) -> tuple[object, object]:
    (row,) = agent.rows("spans", trace=name, text="ProfilerStep# -gpu", top=1)
    longest = max(marks(name), key=ns)
    return (row["name"], int(row["duration_ns"])), (longest["name"], ns(longest))


def how_long_is_the_median_step(name: str, agent: Agent) -> tuple[object, object]:
    rows = agent.rows("ask", trace=name, analysis="steps", columns="start_ns,duration_ns", top=100)
    got = [int(row["duration_ns"]) for row in rows]
    starts = [int(each["ts"] * 1000) for each in marks(name)]
    truth = [after - before for before, after in pairwise(starts)]
    # A step ends where the next one begins.
    return median(got[: len(truth)]), median(truth)


OF_STEPS = (how_many_steps_are_there, how_long_is_the_longest_marked_step, how_long_is_the_median_step)


@public.needs_public_traces
@pytest.mark.parametrize("name", WITH_STEPS)
@pytest.mark.parametrize("question", OF_STEPS, ids=lambda each: each.__name__)
def test_steps_of_a_profile(asked: Agent, question: Callable[[str, Agent], tuple[object, object]], name: str) -> None:
    got, truth = question(name, asked)
    assert got == truth


RANKS = "kineto/two_ranks"


@public.needs_public_traces
@pytest.mark.parametrize("rank", [0, 1])
def test_which_kernel_of_a_rank_takes_longest(asked: Agent, rank: int) -> None:
    (row,) = asked.rows("spans", trace=RANKS, where=f"rank:{rank}", text="role:kernel", top=1)
    assert int(row["duration_ns"]) == max(map(ns, of_kind(f"{RANKS}/sampled_rank-{rank}.json.gz", "kernel")))


@public.needs_public_traces
@pytest.mark.parametrize("rank", [0, 1])
def test_how_long_a_rank_is_in_kernels_of_nccl(asked: Agent, rank: int) -> None:
    head = asked.ask("spans", trace=RANKS, where=f"rank:{rank}", text="ncclkernel role:kernel", top=1).splitlines()[0]
    found = [each for each in of_kind(f"{RANKS}/sampled_rank-{rank}.json.gz", "kernel") if "nccl" in each["name"]]
    assert f" {len(found)} spans, {sum(map(ns, found))} ns together" in head


# --- Nsight Systems: the truth is in the database ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def report() -> Iterator[sqlite3.Connection]:
    if not public.are_here():
        pytest.skip(public.MISSING)
    connection = sqlite3.connect(f"file:{public.FOLDER / NSYS}?mode=ro", uri=True)
    yield connection
    connection.close()


IN_THE_REPORT = {
    "how long the kernels take": (
        ("kernels", "total_ns", {}),
        "select sum(end - start) from CUPTI_ACTIVITY_KIND_KERNEL",
    ),
    "how many kernels run": (("kernels", "calls", {}), "select count(*) from CUPTI_ACTIVITY_KIND_KERNEL"),
    "how many bytes go to the GPU": (
        ("copies", "size_bytes", {"kind": "HtoD"}),
        "select sum(bytes) from CUPTI_ACTIVITY_KIND_MEMCPY where copyKind = 1",
    ),
    "how many bytes come back": (
        ("copies", "size_bytes", {"kind": "DtoH"}),
        "select sum(bytes) from CUPTI_ACTIVITY_KIND_MEMCPY where copyKind = 2",
    ),
    "how long copies back take": (
        ("copies", "total_ns", {"kind": "DtoH"}),
        "select sum(end - start) from CUPTI_ACTIVITY_KIND_MEMCPY where copyKind = 2",
    ),
    "how long the call that takes most takes": (
        ("calls", "total_ns", {}),
        # Each call is there twice: the other one is a range around it, with no version in its name.
        "select sum(end - start) from CUPTI_ACTIVITY_KIND_RUNTIME join StringIds on id = nameId "
        "where value like '%~_v%' escape '~' group by nameId order by 1 desc limit 1",
    ),
}


@public.needs_public_traces
@pytest.mark.parametrize("question", IN_THE_REPORT)
def test_a_report_of_nsight_systems(asked: Agent, report: sqlite3.Connection, question: str) -> None:
    (analysis, column, of), query = IN_THE_REPORT[question]
    rows = asked.rows("ask", trace=NSYS, analysis=analysis)
    (got, *_) = [int(row[column]) for row in rows if of.items() <= row.items()]
    assert (got,) == report.execute(query).fetchone()


# --- recorded runs: the truth is in the program, or in the spans and messages -----------------------------------------


def truth(folder: Path, name: str, query: str) -> list[tuple[Any, ...]]:
    """Ask the exported tables of a run; `named` has the spans with their names and ranks."""
    with duckdb.connect() as connection:
        for path in (folder / "tables" / name).glob("*.parquet"):
            connection.sql(f"create view {path.stem} as select * from '{path}'")
        connection.sql(
            "create view named as select s.*, r.name, p.rank, p.process from spans s join regions r using (region) "
            "join locations l using (location) join processes p using (process)"
        )
        return connection.sql(query).fetchall()


NEIGHBOURS = [(0, 1), (0, 2), (1, 0), (1, 3), (2, 0), (2, 3), (3, 1), (3, 2)]


@pytest.mark.parametrize(("sender", "receiver"), NEIGHBOURS)
def test_how_many_bytes_a_rank_sends_to_another(asked: Agent, exported: Path, sender: int, receiver: int) -> None:
    rows = asked.rows("ask", trace="mpi", analysis="messages")
    (got,) = [row for row in rows if (row["sender"], row["receiver"]) == (str(sender), str(receiver))]
    query = f"""select count(*), sum(size_bytes) from messages join locations using (location)
        join processes using (process) where direction = 'send' and rank = {sender} and peer_rank = {receiver}"""
    assert [(int(got["messages"]), int(got["total_bytes"]))] == truth(exported, "mpi", query)


@pytest.mark.parametrize("rank", range(4))
@pytest.mark.parametrize("function", ["MPI_Allreduce", "MPI_Waitall"])
def test_how_long_a_rank_is_in_a_function(asked: Agent, exported: Path, rank: int, function: str) -> None:
    rows = asked.rows("ask", trace="mpi", analysis="profile", options={"step": "all"}, where=f"rank:{rank}")
    (got,) = [(int(row["calls"]), int(row["total_ns"])) for row in rows if row["name"] == function]
    query = f"select count(*), sum(duration_ns) from named where rank = {rank} and name = '{function}'"
    assert [got] == truth(exported, "mpi", query)


def test_which_rank_is_late(asked: Agent, exported: Path) -> None:
    (row,) = asked.rows("ask", trace="mpi", analysis="stragglers", sort="last", top=1)
    query = """
        with each as (
            select n.rank, start_ns, row_number() over (partition by n.rank, collective order by start_ns) as number,
                collective
            from collective_spans c join named n using (location, row) where collective in ('allreduce', 'gather')
        ), places as (
            select rank, row_number() over (partition by collective, number order by start_ns desc) as place from each
        )
        select rank, count(*) from places where place = 1 group by 1 order by 2 desc"""
    assert (int(row["rank"]), int(row["last"])) == truth(exported, "mpi", query)[0]


@pytest.mark.parametrize("sender", range(3))
def test_how_many_messages_a_rank_sends_to_the_next(asked: Agent, exported: Path, sender: int) -> None:
    rows = asked.rows("ask", trace="mpi-traffic", analysis="messages")
    ends = ("message", str(sender), str((sender + 1) % 3))
    (got,) = [row for row in rows if (row["kind"], row["sender"], row["receiver"]) == ends]
    query = f"""select count(*), sum(size_bytes) from messages join locations using (location)
        join processes using (process)
        where direction = 'send' and rank = {sender} and peer_rank = {(sender + 1) % 3}"""
    assert [(int(got["messages"]), int(got["total_bytes"]))] == truth(exported, "mpi-traffic", query)


# programs/gpu_training.py: 24 steps of three layers; times are those of the fake GPU, to some ns.
STEPS = 24
OF_THE_GPU = {
    "gemm_f16": (3 * STEPS, 300_000),
    "gemm_f16_dgrad": (3 * STEPS, 350_000),
    "bias_add": (3 * STEPS, 30_000),
    "relu": (3 * STEPS, 20_000),
    "elementwise": (3 * STEPS, 15_000),
    "sgd": (STEPS, 80_000),
}


@pytest.mark.parametrize("kernel", OF_THE_GPU)
def test_how_often_a_kernel_runs_and_how_long(asked: Agent, kernel: str) -> None:
    rows = asked.rows("ask", trace="gpu", analysis="kernels")
    (row,) = [row for row in rows if row["kernel"] == kernel]
    calls, duration_ns = OF_THE_GPU[kernel]
    assert int(row["calls"]) == calls
    assert float(row["avg_ns"]) == pytest.approx(duration_ns, abs=10)


@pytest.mark.parametrize(("kind", "size"), [("HtoD", 1 << 20), ("DtoH", 4), ("set", 4096)])
def test_how_many_bytes_are_copied(asked: Agent, kind: str, size: int) -> None:
    rows = asked.rows("ask", trace="gpu", analysis="copies")
    assert [int(row["size_bytes"]) for row in rows if row["kind"] == kind] == [STEPS * size]


def test_which_function_loads_slowly(asked: Agent) -> None:
    found = asked.ask("findings", trace="gpu")
    assert "every 7th step" in found
    assert "in load" in found


def test_what_runs_on_all_threads_where_a_finding_shows(asked: Agent) -> None:
    (evidence,) = [
        line
        for line in asked.ask("findings", trace="gpu").splitlines()
        if line.startswith("  evidence: thread:2 time:881")
    ]
    rows = asked.rows("spans", trace="gpu", where="finding:1", text="load")
    begin, end = (int(text) for text in evidence.rpartition("time:")[2].split("-"))
    (load,) = [row for row in rows if row["name"] == "load"]
    assert int(load["start_ns"]) < end
    assert int(load["start_ns"]) + int(load["duration_ns"]) > begin


# programs/annotated.py: 30 steps.
@pytest.mark.parametrize(("name", "calls"), [("load", 30), ("phase-0", 15), ("phase-1", 15), ("fails", 30)])
def test_how_often_a_region_runs(asked: Agent, name: str, calls: int) -> None:
    rows = asked.rows("ask", trace="annotated", analysis="profile", options={"step": "all"})
    assert [int(row["calls"]) for row in rows if row["name"] == name] == [calls]


@pytest.mark.parametrize("name", ["load", "phase-1"])
def test_how_long_the_longest_execution_of_a_region_is(asked: Agent, exported: Path, name: str) -> None:
    (row,) = asked.rows("spans", trace="annotated", text=f"{name} paradigm:user", top=1)
    query = f"select start_ns, duration_ns from named where name = '{name}' order by duration_ns desc limit 1"
    assert [(int(row["start_ns"]), int(row["duration_ns"]))] == truth(exported, "annotated", query)


@pytest.mark.parametrize("rank", range(4))
def test_how_long_a_step_of_a_rank_takes(asked: Agent, exported: Path, rank: int) -> None:
    (step,) = [row["step"] for row in asked.rows("steps", trace="mpi", rank=f"rank:{rank}", skip=7, top=1)]
    one = asked.ask("step", trace="mpi", step=step)
    query = f"select duration_ns from steps join processes using (process) where rank = {rank} and step = 7"
    assert f"duration_ns={truth(exported, 'mpi', query)[0][0]};" in one


# A training, each step in detail.
WAITS = "name like 'enumerate(DataLoader)%'"


def test_in_which_step_the_longest_data_wait_is(asked: Agent, exported: Path) -> None:
    (row,) = asked.rows("steps", trace="training-kept", sort="data_wait_ns", top=1)
    query = f"""select step from named n join steps s
        on n.start_ns >= s.start_ns and n.start_ns < s.start_ns + s.duration_ns and n.process = s.process
        where {WAITS} order by n.duration_ns desc limit 1"""
    assert row["step"] == f"step:{truth(exported, 'training-kept', query)[0][0]}"


def test_how_long_the_longest_wait_for_a_batch_is(asked: Agent, exported: Path) -> None:
    (row,) = asked.rows("spans", trace="training-kept", text="enumerate(dataloader)", top=1)
    assert [(int(row["duration_ns"]),)] == truth(
        exported, "training-kept", f"select max(duration_ns) from named where {WAITS}"
    )


def test_which_operator_takes_most_time_itself(asked: Agent, exported: Path) -> None:
    (row,) = asked.rows(
        "ask", trace="training-kept", analysis="operators", options={"step": "all"}, columns="name,self_ns", top=1
    )
    query = """select name, sum(self_ns)::bigint from named join regions using (region)
        where role = 'operator' group by 1 order by 2 desc limit 1"""
    assert [(row["name"], int(row["self_ns"]))] == truth(
        exported, "training-kept", query.replace("select name", "select named.name")
    )


def test_what_runs_inside_of_the_longest_backward_node(asked: Agent, exported: Path) -> None:
    (row,) = asked.rows("spans", trace="training-kept", text="evaluate_function", top=1)
    inside = asked.ask("span", trace="training-kept", span=row["span"])
    location, number = row["span"].removeprefix("span:").split(".")
    query = f"select count(*), sum(duration_ns)::bigint from spans where location = {location} and parent = {number}"
    ((count, total_ns),) = truth(exported, "training-kept", query)
    assert f"directly inside: {count} spans, {total_ns} ns" in inside


# --- what questions cost ----------------------------------------------------------------------------------------------


def test_a_question_takes_at_most_three_calls() -> None:
    if len(calls) < 20:
        pytest.skip("few questions were asked")
    if public.are_here():
        assert len(calls) >= 100
    assert median(calls.values()) <= 3
    assert max(calls.values()) <= 3
