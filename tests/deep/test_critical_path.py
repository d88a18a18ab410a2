"""The critical path: small runs computed on paper, every way through random graphs, and what HTA says of a profile."""

import gzip
import json
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strobe
from strobe.api.imports import opened
from strobe.breakdown.what_if.changes import changes
from strobe.errors import UsageError
from strobe.ranks.critical_path.longest_path import Builder, longest_path
from tests.deep.kineto import US, call, copy, event, kernel, operator, profile, step
from tests.deep.test_stragglers import all_reduce, job
from tests.public import FOLDER
from tests.unit.hand_made import HandMadeProcess, make_trace, span


def path(trace, **options):
    """The parts of the path as (kind, first word of the region, microseconds)."""
    rows = trace.critical_path(by="segment", **{"step": "all", **options}).to_pylist()
    return [(row["kind"], row["region"], row["time_ns"] / US) for row in rows]


def kinds(trace, column="time_ns", **options):
    rows = trace.critical_path(**{"step": "all", **options}).to_pylist()
    return {row["kind"]: row[column] / US for row in rows}


def waiting(name, start_us, duration_us, *, stream, **args):
    """What CUPTI says of a call that waits; its arguments keep their underscores."""
    found = event("cuda_sync", name, start_us, duration_us, 0, stream, device=0, stream=stream)
    return {**found, "args": {**found["args"], "cuda_sync_kind": name, **args}}


def test_the_host_bounds_a_step_whose_last_kernel_is_launched_late(tmp_path):
    trace = profile(
        tmp_path,
        operator("aten::slow", 0, 90),
        operator("aten::mm", 95, 10),
        call(98, 4, correlation=1),
        kernel("gemm", 108, 5, correlation=1),
    )
    assert path(trace) == [
        ("host", "aten::slow", 90),
        ("host", None, 5),
        ("host", "aten::mm", 3),
        ("launch", "cudaLaunchKernel", 10),
        ("computation", "gemm", 5),
    ]
    assert kinds(trace) == {"host": 98, "launch": 10, "computation": 5}
    (host, *_) = trace.critical_path(step="all").to_pylist()
    assert (host["share"], host["parts"]) == (pytest.approx(98 / 113), 3)


def gpu_bound(tmp_path, *, host_until=5):
    return profile(
        tmp_path,
        *(call(k, 1, correlation=k + 1) for k in range(3)),
        operator("aten::view", 4, host_until - 4),
        call(host_until, 165 - host_until, "cudaDeviceSynchronize", correlation=9),
        kernel("gemm_1", 10, 50, correlation=1),
        kernel("gemm_2", 61, 50, correlation=2),
        kernel("ncclDevKernel_AllReduce", 112, 50, correlation=3),
    )


def test_kernels_bound_a_step_that_waits_for_them(tmp_path):
    trace = gpu_bound(tmp_path)
    assert path(trace) == [
        ("launch", "cudaLaunchKernel", 10),
        ("computation", "gemm_1", 50),
        ("queue", "gemm_2", 1),
        ("computation", "gemm_2", 50),
        ("queue", "ncclDevKernel_AllReduce", 1),
        ("communication", "ncclDevKernel_AllReduce", 50),
        ("sync", "cudaDeviceSynchronize", 3),
    ]


def test_what_if_finds_the_new_longest_path(tmp_path):
    trace = gpu_bound(tmp_path, host_until=100)
    # 10 + 25 + 1 + 25 + 1 + 50 + 3.
    assert kinds(trace, "predicted_ns", what_if="gemm*=0.5") == {
        "launch": 10, "computation": 50, "queue": 2, "communication": 50, "sync": 3,
    }  # fmt: skip
    # Without the kernels 15 us are left of that way: the host takes 100 until it waits.
    assert kinds(trace, "predicted_ns", what_if="gemm*=0,communication=0")["host"] == 100
    table = trace.critical_path(step="all", what_if="gemm*=0,communication=0")
    assert "with gemm*=0,communication=0: 0.100 ms (-39.4%)" in table.about
    assert {row["kind"]: row["time_ns"] / US for row in table.to_pylist()}["computation"] == 100
    # A pattern holds for what runs inside, once; the launch is the call's.
    assert kinds(trace, "predicted_ns", what_if="cudaLaunchKernel=3")["launch"] == 30
    parts = path(trace, what_if="gemm_1=0.1")
    assert parts[1] == ("computation", "gemm_1", 50)
    rows = trace.critical_path(by="segment", step="all", what_if="gemm_1=0.1").to_pylist()
    assert [row["predicted_ns"] / US for row in rows] == [10, 5, 1, 50, 1, 50, 3]


def test_what_if_must_be_understood(tmp_path):
    assert changes("void f<float, 4>(int)=0.5, launch=0") == [
        ("", "void f<float, 4>(int)", 0.5, 0.5),
        ("", "launch", 0.0, 0.0),
    ]
    trace = gpu_bound(tmp_path)
    for text, said in (
        ("gemm*", "is not a change"),
        ("gemm*=fast", "is not a change"),
        ("nothing*=0.5", "no region of this trace is called 'nothing"),
    ):
        with pytest.raises(UsageError, match=said):
            trace.critical_path(what_if=text)


def test_a_change_of_an_operator_changes_what_runs_inside_of_it_once(tmp_path):
    trace = profile(tmp_path, operator("aten::outer", 0, 100), operator("aten::inner", 20, 60))
    assert kinds(trace, "predicted_ns", what_if="aten::*=0.5") == {"host": 50}
    assert kinds(trace, "predicted_ns", what_if="aten::inner=0.5") == {"host": 70}
    assert kinds(trace, "predicted_ns", what_if="aten::outer=0.5") == {"host": 50}


def two_streams(*told):
    return (
        call(0, 1, correlation=1),
        call(2, 1, "cudaEventRecord", correlation=2),
        call(3, 1, correlation=3),
        call(4, 1, "cudaStreamWaitEvent", correlation=4),
        call(6, 1, correlation=5),
        kernel("a", 5, 45, correlation=1, stream=7),
        kernel("after_the_record", 50, 4, correlation=3, stream=7),
        *told,
        kernel("b", 55, 20, correlation=5, stream=20),
    )


def test_a_stream_waits_for_the_event_that_it_was_told_to(tmp_path):
    told = waiting(
        "Stream Wait Event", 4, 1, stream=20, correlation=4, wait_on_stream=7,
        wait_on_cuda_event_record_corr_id=2, wait_on_cuda_event_id=1,
    )  # fmt: skip
    assert path(profile(tmp_path, *two_streams(told))) == [
        ("launch", "cudaLaunchKernel", 5),
        ("computation", "a", 45),
        ("sync", "b", 5),
        ("computation", "b", 20),
    ]


def test_what_seems_to_begin_before_its_event_begins_with_it(tmp_path):
    """Times of a GPU are converted: 1 us too early, after what its stream was told to wait for."""
    told = waiting(
        "Stream Wait Event", 4, 1, stream=20, correlation=4, wait_on_stream=7,
        wait_on_cuda_event_record_corr_id=2, wait_on_cuda_event_id=1,
    )  # fmt: skip
    events = [each for each in two_streams(told) if each["name"] != "b"]
    events.append(kernel("b", 49, 26, correlation=5, stream=20))
    assert path(profile(tmp_path, *events)) == [
        ("launch", "cudaLaunchKernel", 5),
        ("computation", "a", 45),
        ("computation", "b", 25),
    ]


def test_without_events_a_late_kernel_waited_for_what_ended_last(tmp_path):
    assert path(profile(tmp_path, *two_streams())) == [
        ("launch", "cudaLaunchKernel", 5),
        ("computation", "a", 45),
        ("computation", "after_the_record", 4),
        ("sync", "b", 1),
        ("computation", "b", 20),
    ]


def test_a_call_waits_for_its_stream_or_its_event(tmp_path):
    def run(*told):
        return profile(
            tmp_path,
            call(0, 1, correlation=1),
            call(1, 1, "cudaEventRecord", correlation=6),
            call(2, 1, correlation=2),
            call(4, 46, "cudaStreamSynchronize", correlation=3),
            operator("aten::after", 50, 50),
            kernel("mine", 5, 30, correlation=1, stream=7),
            kernel("other", 6, 42, correlation=2, stream=8),
            *told,
        )

    assert ("computation", "other", 42) in path(run())
    awaited = run(waiting("Stream Sync", 4, 46, stream=7, correlation=3))
    assert path(awaited) == [
        ("launch", "cudaLaunchKernel", 5),
        ("computation", "mine", 30),
        ("sync", "cudaStreamSynchronize", 15),
        ("host", "aten::after", 50),
    ]
    event_sync = waiting("Event Sync", 4, 46, stream=7, correlation=3, wait_on_stream=7,
                         wait_on_cuda_event_record_corr_id=6)  # fmt: skip
    assert path(run(event_sync)) == path(awaited)


def test_a_copy_that_is_done_before_its_call_returns_is_what_the_call_waited_for(tmp_path):
    trace = profile(
        tmp_path,
        operator("aten::before", 0, 10),
        call(10, 40, "cudaMemcpyAsync", correlation=1),
        copy("Memcpy DtoH (Device -> Pageable)", 30, 18, correlation=1),
        operator("aten::after", 50, 50),
    )
    assert kinds(trace) == {"host": 60, "launch": 20, "copy": 18, "sync": 2}


def test_a_query_does_not_wait_and_a_wait_for_nothing_is_its_own(tmp_path):
    trace = profile(
        tmp_path,
        call(0, 1, correlation=1),
        kernel("k", 3, 7, correlation=1),
        operator("aten::a", 2, 18),
        call(8, 4, "cudaEventQuery", correlation=2),
        call(20, 5, "cudaDeviceSynchronize", correlation=3),
    )
    assert kinds(trace) == {"host": 16, "sync": 9}


def test_the_main_thread_waits_for_autograd(tmp_path):
    backward = "autograd::engine::evaluate_function: MulBackward0"
    trace = profile(
        tmp_path,
        operator("aten::mul", 0, 20),
        operator(backward, 22, 38, thread=2),
        operator("aten::mul", 30, 10, thread=2),
        operator("aten::add_", 63, 7),
        operator("aten::add_", 70, 10),
    )
    assert path(trace) == [
        ("host", "aten::mul", 20),
        ("host", None, 2),
        ("host", backward, 8),
        ("host", "aten::mul", 10),
        ("host", backward, 20),
        ("host", None, 3),
        ("host", "aten::add_", 7),
        ("host", "aten::add_", 10),
    ]
    # Another thread's own work holds up nobody.
    trace = profile(tmp_path, operator("aten::mul", 0, 20), operator("aten::copy_", 22, 38, thread=2),
                    operator("aten::add_", 63, 7), operator("aten::add_", 70, 10))  # fmt: skip
    assert ("host", None, 43) in path(trace)


def test_waiting_for_data_is_all_that_happens_in_it(tmp_path):
    wait = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    trace = profile(tmp_path, operator(wait, 0, 40), operator("aten::stack", 10, 20), operator("aten::mm", 40, 10))
    assert kinds(trace) == {"data": 40, "host": 10}


def steps(tmp_path):
    """Four steps of 40, 60, 50 and 90 us, on a GPU that is behind by more than a step."""
    lengths, begins, events = [40, 60, 50, 90], [0, 40, 100, 150], []
    for k, (begin, length) in enumerate(zip(begins, lengths, strict=True)):
        events += [step(k, begin, length), operator("aten::mm", begin + 1, 5), call(begin + 2, 1, correlation=k + 1)]
        events.append(kernel(f"gemm_{k}", 300 + 100 * k, 99, correlation=k + 1))
    return profile(tmp_path, *events)


def test_a_step_is_its_own_work_however_late_the_gpu_does_it(tmp_path):
    trace = steps(tmp_path)
    # The median of 40, 50, 60 and 90.
    assert "step 2: " in trace.critical_path().about
    # 2 us of the host until the launch, 1 us after the kernel of the step before, and the kernel.
    assert kinds(trace, step="1") == {"host": 2, "launch": 1, "computation": 99}
    with pytest.raises(UsageError, match="no step '7'"):
        trace.critical_path(step="7")
    with pytest.raises(UsageError, match="no rank '3'"):
        trace.critical_path(rank="3")


def test_the_time_before_work_that_nobody_launched_is_unexplained(tmp_path):
    trace = profile(
        tmp_path,
        operator("aten::mm", 0, 10),
        call(2, 1, correlation=1),
        kernel("a", 6, 20, correlation=1, stream=7),
        kernel("b", 100, 50, correlation=99, stream=8),
    )
    assert path(trace) == [("unexplained", "b", 100), ("computation", "b", 50)]


def test_a_thread_that_spins_until_its_work_is_done_waits_for_it(tmp_path):
    def run(until):
        return profile(
            tmp_path,
            operator("dispatch", 0, until),
            call(5, 5, correlation=1),
            kernel("notify", 15, 985, correlation=1),
            operator("aten::mm", until, 50),
        )

    assert kinds(run(1004)) == {"host": 55, "launch": 10, "computation": 985, "sync": 4}
    # The flag is set before the kernel has ended.
    assert kinds(run(990)) == {"host": 55, "launch": 10, "computation": 975}
    # Whoever goes on for long had work of its own.
    assert kinds(run(1300)) == {"host": 1350}


def test_a_step_whose_work_ends_later_is_told_so(tmp_path):
    about = steps(tmp_path).critical_path(step="1").about
    # It lasts from 40 to 100 us, its kernel from 400 to 499, the one of the step before from 300 to 399.
    assert "step 1: 0.102 ms, its last work ends 0.399 ms later, without 0.357 ms in which GPUs did what" in about


def test_without_anything_a_sentence_says_so(tmp_path):
    table = profile(tmp_path, operator("aten::mm", 5, 0)).critical_path()
    assert (len(table), "has a duration" in table.note) == (0, True)


@given(
    times=st.lists(st.integers(0, 20), min_size=1, max_size=8),
    pairs=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(0, 9)), max_size=16),
    factors=st.lists(st.integers(0, 3), min_size=16, max_size=16),
)
def test_the_longest_of_all_ways_through_a_graph_is_found(times, pairs, factors):
    count = len(times)
    pairs = [(a % count, b % count, w) for a, b, w in pairs if times[a % count] < times[b % count]]
    builder = Builder()
    nodes = builder.moments(np.array(times), 0)
    column = [np.array([pair[k] for pair in pairs], dtype=np.int64) for k in range(3)]
    builder.edges(nodes[column[0]], nodes[column[1]], column[2], 0, np.arange(len(pairs)))
    graph = builder.graph(nodes)

    def longest(node, weights):
        onward = [weights[k] + longest(b, weights) for k, (a, b, _) in enumerate(pairs) if a == node]
        return max(onward, default=0)

    of_edge = graph.edges.location  # the number of the pair
    for weights in ([w for *_, w in pairs], [w * f for (*_, w), f in zip(pairs, factors, strict=False)]):
        given_ = np.array(weights, dtype=np.int64)[of_edge]
        found = longest_path(graph, given_)
        assert found.length_ns == max(longest(node, weights) for node in range(count))
        assert found.length_ns == given_[found.edges].sum()
        ways = graph.edges.chosen(found.edges)
        assert (ways.target[:-1] == ways.source[1:]).all()


def random_run(seed):
    """Operators that launch kernels on two streams and wait now and then; no two moments are the same nanosecond."""
    chance = random.Random(seed)
    now, ends, host, kernels, syncs = 0.0, {7: 0.0, 8: 0.0}, [], [], []

    def pause(low, high):
        return round(chance.uniform(low, high), 3)

    for number in range(1, 60):
        begin = now = now + pause(0.01, 3)
        if chance.random() < 0.15:
            done = max(now, *ends.values()) + pause(1, 4)
            syncs.append(call(begin, done - begin, "cudaDeviceSynchronize", correlation=1000 + number))
            now = done
            continue
        launched = now = now + pause(0.01, 9)
        now += pause(1, 4)
        host += [operator("aten::mm", begin, now + 2 - begin), call(launched, now - launched, correlation=number)]
        now += 2
        stream = chance.choice([7, 8])
        ready = max(launched + pause(3, 7), ends[stream] + pause(0.5, 2))
        if chance.random() < 0.3:  # what it needs comes from the other stream
            ready = max(ready, ends[15 - stream] + pause(0.5, 2))
        ends[stream] = ready + pause(1, chance.choice([9, 90]))
        kernels.append((round(launched, 3), round(ready, 3), round(ends[stream], 3), stream, number))
    device = [kernel("k", b, e - b, stream=stream, correlation=number) for _, b, e, stream, number in kernels]
    return [*host, *syncs, *device], kernels


def walked_back(events, kernels):
    """The sums of the path by kind, by looking at everything for every moment."""
    host = [(round(e["ts"], 3), round(e["ts"] + e["dur"], 3), e["name"]) for e in events if e["cat"] != "kernel"]
    moments = sorted({time for begin, end, _ in host for time in (begin, end)})
    syncs = {end: begin for begin, end, name in host if "Sync" in name}
    sums = dict.fromkeys(("host", "launch", "queue", "sync", "computation"), 0.0)
    on_gpu, now = max((end, True) for _, _, end, _, _ in kernels), 0.0
    on_gpu, now = on_gpu[0] > moments[-1], max(on_gpu[0], moments[-1])
    while on_gpu or now > moments[0]:
        if on_gpu:
            launched, begin, end, stream, _ = next(k for k in kernels if k[2] == now)
            sums["computation"] += end - begin
            before = max((k[2] for k in kernels if k[3] == stream and k[2] <= begin), default=-1)
            any_ = max((k[2] for k in kernels if k[2] <= begin), default=-1)
            source, kind = max((launched, "launch"), (before, "queue"))
            if begin - source > 30 >= begin - any_ and any_ > source:
                source, kind = any_, "sync"
            sums[kind] += begin - source
            on_gpu, now = kind != "launch", source
        else:
            previous = max(time for time in moments if time < now)
            done = max((k[2] for k in kernels if k[2] <= now), default=-1)
            on_gpu = now in syncs and done > previous
            source = done if on_gpu else previous
            sums["sync" if now in syncs else "host"] += now - source
            now = source
    return {kind: time for kind, time in sums.items() if time}


@pytest.mark.parametrize("seed", range(6))
def test_random_runs_have_the_path_of_a_walk_that_looks_at_everything(tmp_path, seed):
    events, kernels = random_run(seed)
    assert kinds(profile(tmp_path, *events)) == pytest.approx(walked_back(events, kernels), abs=0.01)


@pytest.mark.parametrize(
    "name", ["kineto/nccl_data.json.gz", "kineto/resnet50_loader_workers0.json.gz", "nvprof/cfd-print-gpu-trace.csv"]
)
def test_the_path_of_a_run_is_all_of_its_time(public, name):
    trace = public(name)
    rows = trace.critical_path(by="segment", step="all").to_arrow()
    start, time = (rows.column(column).to_numpy() for column in ("start_ns", "time_ns"))
    ((first, last),) = trace.sql(
        "select min(start_ns), max(start_ns + duration_ns) from spans join locations using (location)"
        " where kind <> 'task'"
    ).rows()
    assert (start[0], start[-1] + time[-1]) == (first, last)
    assert ((start + time)[:-1] == start[1:]).all()


@pytest.mark.parametrize("name", ["nccl_data", "diff_control", "resnet50_loader_workers0"])
def test_the_parts_of_a_path_follow_each_other(public, name):
    trace = public(f"kineto/{name}.json.gz")
    rows = trace.critical_path(by="segment").to_pylist()
    ends = [row["start_ns"] + row["time_ns"] for row in rows]
    assert all(end <= row["start_ns"] for end, row in zip(ends, rows[1:], strict=False))
    sums = [sum(row["time_ns"] for row in trace.critical_path(by=by).to_pylist()) for by in ("kind", "region")]
    assert sums == [sum(row["time_ns"] for row in rows)] * 2


def test_holistic_trace_analysis_finds_the_same_path(public):
    trace = public("kineto/alexnet_critical_path.json.gz")
    mark = "[param|pytorch.model.alex_net|0|0|0|measure|forward]"
    *_, one = trace.sql(
        f"select start_ns, duration_ns from spans join regions r using (region) where r.name = '{mark}' order by 1"
    ).to_pylist()
    window = trace.part(time_ns=(one["start_ns"], one["start_ns"] + one["duration_ns"]))
    told = json.loads((FOLDER / "alexnet_critical_path.hta.json").read_text())["analyses"]["critical_path"]["out"]
    hta = {kind: round(share * told["duration"] / 100) for kind, share in told["bound_by_pct"].items()}
    ours = kinds(window)
    assert ours["computation"] + ours["copy"] == hta["gpu_compute_bound"]
    assert ours["queue"] == hta["gpu_kernel_kernel_overhead"]
    assert ours["launch"] == hta["gpu_kernel_launch_overhead"]
    # HTA gives no time to what the host does between operators: ours is in the mark itself.
    regions = window.critical_path(by="region", step="all").to_pylist()
    by_region = {row["region"]: row["time_ns"] / US for row in regions if row["kind"] == "host"}
    assert ours["host"] - by_region[mark] == hta["cpu_bound"]
    # Nor to the moment until the call that waited returns: so its path is shorter than what it explains.
    assert sum(ours.values()) == one["duration_ns"] / US
    assert sum(ours.values()) - by_region[mark] - ours["sync"] == told["duration"]
    for name in ("cudaMalloc", "cudaLaunchKernel", "aten::cudnn_convolution"):
        assert by_region[name] == told["top"][name]


def late_collective(tmp_path):
    """Rank 1 comes 40 us late to an all-reduce, because of its host; rank 0 computes on what comes out."""
    return job(
        tmp_path,
        [
            [call(0, 1, correlation=1), call(1, 1, correlation=2), all_reduce(5, 60, 0, correlation=1),
             kernel("gemm", 61, 39, stream=20, correlation=2)],
            [operator("aten::slow", 0, 36), call(38, 1, correlation=1), all_reduce(45, 60, 0, correlation=1)],
        ],
    )  # fmt: skip


def test_the_path_leads_through_the_rank_that_comes_last(tmp_path):
    trace = late_collective(tmp_path)
    rows = trace.critical_path(by="segment", step="all").to_pylist()
    assert [(row["rank"], row["kind"], row["time_ns"] / US) for row in rows] == [
        (1, "host", 36), (1, "host", 2), (1, "launch", 7), (0, "communication", 15), (0, "queue", 1),
        (0, "computation", 39),
    ]  # fmt: skip
    # Half as slow, it comes 18 us sooner; and never sooner than 5 us, when rank 0 does.
    assert sum(kinds(trace, "predicted_ns", what_if="aten::slow=0.5").values()) == 100 - 18
    faster = kinds(trace, "predicted_ns", what_if="host=0,launch=0.1")
    assert sum(faster.values()) == pytest.approx(0.7 + 15 + 1 + 39)
    by_rank = {
        rank: {row["kind"]: row["time_ns"] / US for row in trace.critical_path(step="all", rank=rank).to_pylist()}
        for rank in ("0", "1")
    }
    assert by_rank["0"] == {"launch": 5, "communication": 55, "queue": 1, "computation": 39}
    assert by_rank["1"]["communication"] == 15
    each = trace.critical_path(step="all", rank="each").to_pylist()
    assert {row["rank"]: row["time_ns"] / US for row in each if row["kind"] == "communication"} == {0: 55, 1: 15}


def test_calls_of_mpi_wait_for_the_last_rank(tmp_path):
    def rank(number, *spans):
        return HandMadeProcess({"main": spans}, pid=100 + number, main=number == 0, rank=number)

    def mpi(name, start, end):
        return span(name, start, end, paradigm="mpi", role="collective")

    trace = make_trace(
        rank(0, mpi("MPI_Allreduce", 0, 50), span("after", 50, 80)),
        rank(1, span("work", 0, 40), mpi("MPI_Allreduce", 40, 52)),
    )
    rows = trace.critical_path(by="segment").to_pylist()
    assert [(row["rank"], row["region"], row["kind"], row["time_ns"]) for row in rows] == [
        (1, "work", "host", 40), (0, "MPI_Allreduce", "communication", 10), (0, "after", "host", 30)
    ]  # fmt: skip
    assert sum(trace.critical_path(what_if="work=0.5").column("predicted_ns")) == 60
    assert sum(trace.critical_path(what_if="MPI_*=0").column("predicted_ns")) == 70


def test_collectives_with_a_root_wait_for_it_or_it_for_the_others(tmp_path):
    archives = pytest.importorskip("tests.formats.otf2_archives")

    def fill(archive):
        of = archive.definitions
        names = ("work", "MPI_Bcast", "MPI_Reduce")
        mpi = {"region_role": archives.RegionRole.COLL_ONE2ALL, "paradigm": archives.Paradigm.MPI}
        work, bcast, reduce = (of.region(name, **(mpi if "MPI" in name else {})) for name in names)
        ops = {bcast: archives.CollectiveOp.BCAST, reduce: archives.CollectiveOp.REDUCE}
        # Rank 1 broadcasts late; it waits for nobody, rank 0 for it. Then rank 0 collects, and rank 2 is late.
        for rank, spans in enumerate((
            [(work, 0, 10), (bcast, 10, 45), (work, 45, 50), (reduce, 50, 95), (work, 95, 130)],
            [(work, 0, 40), (bcast, 40, 42), (work, 42, 60), (reduce, 60, 62), (work, 62, 63)],
            [(work, 0, 20), (bcast, 20, 44), (work, 44, 90), (reduce, 90, 91), (work, 91, 99)],
        )):  # fmt: skip
            events = archive.events(archive.threads[rank])
            for region, begin, end in spans:
                events.enter(1000 + begin, region)
                if region in ops:
                    events.mpi_collective_begin(1000 + begin)
                    events.mpi_collective_end(1000 + end, ops[region], archive.world, 1 - (region is reduce), 8, 8)
                events.leave(1000 + end, region)

    anchor = archives.write(tmp_path / "job", fill, ranks=3)
    rows = strobe.open(opened(anchor, cache=tmp_path, talk=False)).critical_path(by="segment", step="all").to_pylist()
    assert [(row["rank"], row["region"], row["time_ns"]) for row in rows] == [
        (1, "work", 40), (2, "MPI_Bcast", 4), (2, "work", 46), (0, "MPI_Reduce", 5), (0, "work", 35),
    ]  # fmt: skip


def test_messages_lead_to_the_other_rank_as_in_a_walk_back_by_hand(public):
    trace = public("otf2/ping-pong-otf2")
    calls = [[], []]
    for row in trace.sql(
        "select rank, start_ns b, start_ns + duration_ns e, spans.name from spans join processes using (process)"
        " where spans.name in ('MPI_Send', 'MPI_Recv') order by b"
    ).to_pylist():
        calls[row["rank"]].append((row["b"], row["e"], row["name"]))
    sent, received = ([[c for c in own if c[2] == name] for own in calls] for name in ("MPI_Send", "MPI_Recv"))
    # From the rank that ends last, back to the last call in which it waited for the other, and on from there.
    ends = trace.sql("select rank, last_ns from locations join processes using (process)").to_pylist()
    rank, now = max(((row["rank"], row["last_ns"]) for row in ends), key=lambda each: each[1])
    expected = []
    while True:
        waits = []
        for own, others in ((received, sent), (sent, received)):
            for (begin, end, _), (other, *_) in zip(own[rank], others[1 - rank], strict=True):
                if end <= now and begin < other < end:
                    waits.append((end, other))
        if not waits:
            break
        end, other = max(waits)
        expected.append((rank, other, end))
        rank, now = 1 - rank, other
    rows = trace.critical_path(by="segment").to_pylist()
    jumps = [
        (row["rank"], row["start_ns"], row["start_ns"] + row["time_ns"])
        for before, row in pairwise(rows)
        if row["rank"] != before["rank"]
    ]
    assert len(expected) > 8
    assert jumps == expected[::-1]


def test_kernels_that_nobody_waited_for_are_not_on_the_path(public):
    # HTA gives no time to what the host does between operators. So it finds six kernels at the end of this path, which
    # were done 235 us before the host even asked for that.
    with gzip.open(FOLDER / "kineto" / "simple_add_critical_path.json.gz") as file:
        events = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]
    mark = max((e for e in events if e["name"].endswith("measure|forward]")), key=lambda e: e["ts"])
    (asked,) = (
        e["ts"]
        for e in events
        if e["name"] == "cudaDeviceSynchronize" and mark["ts"] + 1000 < e["ts"] < mark["ts"] + mark["dur"]
    )
    done = max(e["ts"] + e["dur"] for e in events if e.get("cat") == "kernel" and e["ts"] < asked)
    assert asked - done == 235
    told = json.loads((FOLDER / "simple_add_critical_path.hta.json").read_text())["analyses"]["critical_path"]["out"]
    assert told["bound_by_pct"]["gpu_compute_bound"] > 0
    trace = public("kineto/simple_add_critical_path.json.gz")
    *_, one = trace.sql(
        f"select start_ns, duration_ns from spans where name = '{mark['name']}' order by start_ns"
    ).to_pylist()
    window = trace.part(time_ns=(one["start_ns"], one["start_ns"] + one["duration_ns"]))
    assert set(kinds(window)) == {"host", "sync"}
    assert sum(kinds(window).values()) == mark["dur"]


def of_process(pid, *events):
    return [{**each, "pid": pid} if each["pid"] == 100 else each for each in events]


def test_without_ranks_the_path_is_that_of_one_process_which_is_named(tmp_path):
    alone = of_process(7, operator("aten::long", 0, 300))
    small = of_process(
        8, operator("aten::mm", 0, 50), call(10, 5, correlation=1), kernel("gemm", 20, 40, correlation=1)
    )
    large = of_process(
        9,
        operator("aten::mm", 30, 50),
        *(call(40 + 10 * n, 5, correlation=n + 1) for n in range(2)),
        *(kernel("gemm", 60 + 50 * n, 40, device=1, correlation=n + 1) for n in range(2)),
    )
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": [*alone, *small, *large]}))
    trace = strobe.open(opened(tmp_path / "t.json", talk=False))
    table = trace.critical_path(step="all")
    assert table.about == "process 2 (pid 9) of 3 that nothing links, the whole run: 0.120 ms"
    assert sum(row["time_ns"] for row in table.to_pylist()) == 120 * US
    each = trace.critical_path(step="all", rank="each")
    assert [text.split(" ")[1] for text in each.about.split("; ")] == ["1", "2"]
    assert sum(row["time_ns"] for row in each.to_pylist()) == (60 + 120) * US


def test_without_gpus_either_the_process_that_lasts_longest_counts(tmp_path):
    first, second = of_process(7, operator("aten::short", 0, 10)), of_process(8, operator("aten::long", 2, 30))
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": [*first, *second]}))
    table = strobe.open(opened(tmp_path / "t.json", talk=False)).critical_path(step="all")
    assert table.about.startswith("process 1 (pid 8) of 2")
    assert [(row["kind"], row["time_ns"]) for row in table.to_pylist()] == [("host", 30 * US)]


def test_work_whose_launches_are_unknown_has_a_path(tmp_path):
    trace = profile(tmp_path, operator("aten::mm", 0, 50), call(10, 5), kernel("gemm", 20, 40))
    assert sum(kinds(trace).values()) == 60
