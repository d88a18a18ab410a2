"""Waits of GPUs and their causes, computed by hand from their definitions before there was code for them.

The definitions are those of `ranks.md`, sections 2 and 3, with threads and streams as locations:

    late_host    a GPU does nothing from the end of all its work until a thread launches the next: E_launch - end
    late_gpu     a call waits for the end of work: min(end, L) - E; the stream that ran it is the delayer
    late_stream  work that was launched waits for the end of the work before an event: end - max(launch, end before)
    wait_at_nxn  a kernel of NCCL that spins, or a call, until the last rank has come

Host and GPU of a process synchronise where one of them waited for the other, and before the first work of the GPU.
The costs of waits of GPUs (all but wait_at_nxn) go on to what the late one waited for, also for another rank. Of a wait
for another rank the causes are found in the whole process: the GPU where the host waits for it, the host where the GPU
does nothing. Waits for the host or the GPU that are shorter than 10 us may be none: their clocks differ.

All times are whole us. The comments behind a case are its arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.deep.kineto import Event, call, event, kernel, operator

GEMM, NCCL = 7, 20  # streams


@dataclass(frozen=True)
class Waited:
    """One wait: the rank, what waited, the awaited rank, how long, and where it came from."""

    state: str
    rank: int
    function: str
    awaited: int
    wait_us: int
    direct_us: float = 0
    indirect_us: float = 0
    unexplained_us: float = 0
    carried_us: float = 0


@dataclass(frozen=True)
class Cost:
    """What a function of a rank costs: the rank that waited for it, directly and through the waits of others."""

    rank: int
    cause: str
    waiting: int
    state: str
    direct_us: float = 0
    long_term_us: float = 0


@dataclass(frozen=True)
class GpuCase:
    """What each rank did, and all its waits and costs."""

    name: str
    what: str
    ranks: Mapping[int, Sequence[Event]]
    waits: list[Waited] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)


def launch(start: int, number: int, *, thread: int = 1) -> Event:
    """A launch of 2 us."""
    return call(start, 2, correlation=number, thread=thread)


def sync(start: int, end: int, number: int = 99) -> Event:
    return call(start, end - start, SYNC, correlation=number)


def ran(name: str, start: int, end: int, number: int, stream: int = GEMM, device: int = 0) -> Event:
    return kernel(name, start, end - start, correlation=number, stream=stream, device=device)


def did(name: str, start: int, end: int, *, thread: int = 1) -> Event:
    return operator(name, start, end - start, thread=thread)


def reduced(start: int, end: int, number: int, sequence: int, ranks: int = 2) -> Event:
    """A kernel of an all-reduce."""
    found = ran(REDUCE, start, end, number, NCCL)
    group = str([*range(ranks)])
    found["args"] |= {  # type: ignore[operator]
        "Collective name": "allreduce",
        "Process Group Name": "0",
        "Process Group Ranks": group,
        "Seq": sequence,
    }
    return found


def waits_for_event(start: int, number: int, stream: int, recorded: int, on: int) -> list[Event]:
    """cudaStreamWaitEvent of a stream for what was recorded on another one, and what CUPTI tells of it."""
    told = event("cuda_sync", "Stream Wait Event", start, 1, 0, stream, device=0, stream=stream)
    told["args"] |= {  # type: ignore[operator]
        "cuda_sync_kind": "Stream Wait Event",
        "correlation": number,
        "wait_on_stream": on,
        "wait_on_cuda_event_record_corr_id": recorded,
        "wait_on_cuda_event_id": 1,
    }
    return [call(start, 1, "cudaStreamWaitEvent", correlation=number), told]


REDUCE, SYNC, LAUNCH = "ncclDevKernel_AllReduce_Sum_f32", "cudaStreamSynchronize", "cudaLaunchKernel"
# A rank that launches two kernels at once: its GPU always has something to do.
BUSY = (launch(0, 1), launch(2, 2), did("load", 4, 60), ran("first", 5, 60, 1), ran("second", 61, 90, 2))


def late_launch(*host: Event, at: int, end: int = 200) -> tuple[Event, ...]:
    """The first kernel runs from 5 to 25; the second is launched at the given moment."""
    return launch(0, 1), ran("first", 5, 25, 1), *host, launch(at, 2), ran("second", at + 5, end, 2)


def loaded(rank: int, until: int, ranks: int = 2) -> list[Event]:
    """Loads from 2 on, launches a collective, which ends at 90, and waits for it; one at 5 has begun the run."""
    return [
        launch(0, 1), did("load", 2, until), launch(until, 2), sync(until + 2, 95),
        reduced(5, 10, 1, 0, ranks), reduced(until + 5, 90, 2, 1, ranks),
    ]  # fmt: skip


GPU_CASES = [
    GpuCase(
        "host_that_loads",
        "Rank 0 launches its second kernel late; rank 1 has launched it before the first one ended.",
        {0: late_launch(did("load", 2, 60), at=60), 1: BUSY},
        # w = 60 - 25 = 35. Since the first work, at 5: host: load 60 - 5 = 55. GPU: first. D: load 55. s = 35 / 55.
        [Waited("late_host", 0, "second", 0, 35, 35)],
        [Cost(0, "load", 0, "late_host", 35)],
    ),
    GpuCase(
        "host_that_loads_and_decodes",
        "Half of what the host did is load, half is decode.",
        {0: late_launch(did("load", 2, 35), did("decode", 35, 65), at=65), 1: BUSY},
        # w = 65 - 25 = 40. Host since 5: load 30, decode 30. s = 40 / 60: 20 each.
        [Waited("late_host", 0, "second", 0, 40, 40)],
        [Cost(0, "load", 0, "late_host", 20), Cost(0, "decode", 0, "late_host", 20)],
    ),
    GpuCase(
        "gpus_that_are_never_idle",
        "Both ranks launch ahead, and nobody waits for a GPU.",
        {0: BUSY, 1: BUSY},
    ),
    GpuCase(
        "gaps_within_the_error_of_clocks",
        "GPUs wait 9 us for their hosts: clocks of host and GPU may differ by 5 us each.",
        {rank: late_launch(did("load", 2, 34), at=34) for rank in range(2)},
    ),
    GpuCase(
        "call_that_waits_for_two_kernels",
        "Rank 0 waits for a stream with two kernels; rank 1 finds its kernel done.",
        {
            0: [launch(0, 1), launch(2, 2), sync(4, 70), ran("short", 5, 25, 1), ran("long", 25, 65, 2)],
            1: [launch(0, 1), did("load", 2, 60), sync(60, 62), ran("short", 5, 25, 1)],
        },
        # w = 65 - 4 = 61. Since 5, on the stream: short 20, long 40. Host: nothing since 5 until 4. D = 60, s = 1:
        # 1 us, until the first kernel began, is unexplained.
        [Waited("late_gpu", 0, SYNC, 0, 61, 60, 0, 1)],
        [Cost(0, "short", 0, "late_gpu", 20), Cost(0, "long", 0, "late_gpu", 40)],
    ),
    GpuCase(
        "host_and_gpu_in_turn",
        "The host waits for the GPU, then the GPU for the host: each interval begins where the wait before it ended.",
        {
            0: [
                launch(0, 1), sync(2, 52, 90), did("load", 52, 90), launch(90, 2), ran("first", 5, 50, 1),
                ran("second", 95, 200, 2), sync(92, 205, 91),
            ],
            1: BUSY,
        },
        # late_gpu: w = 50 - 2 = 48. Stream since 5: first 45. D = 45, s = 1, unexplained 3.
        # late_host: w = 90 - 50 = 40. Host since 50: the rest of the call 2, load 38. D = 40.
        # late_gpu: w = 200 - 92 = 108. Stream since 90: second 105. Host since 90: launch. D = 105, unexplained 3.
        [
            Waited("late_gpu", 0, SYNC, 0, 48, 45, 0, 3),
            Waited("late_host", 0, "second", 0, 40, 40),
            Waited("late_gpu", 0, SYNC, 0, 108, 105, 0, 3),
        ],
        [
            Cost(0, "first", 0, "late_gpu", 45),
            Cost(0, SYNC, 0, "late_host", 2),
            Cost(0, "load", 0, "late_host", 38),
            Cost(0, "second", 0, "late_gpu", 105),
        ],
    ),
    GpuCase(
        "late_rank_of_two",
        "Rank 1 loads 40 us longer: the kernel of rank 0 spins, and the hosts of both wait for theirs.",
        {0: loaded(0, 30), 1: loaded(1, 70)},
        # wait_at_nxn of rank 0: w = 75 - 35 = 40. Since 10: rank 1 load 60, rank 0 load 20. D: load 40.
        # late_host: rank 0: 30 - 10 = 20, load. Rank 1: 70 - 10 = 60, load.
        # late_gpu of rank 0: w = 90 - 32 = 58. Stream since 30: the collective (90 - 35) - 40 waited = 15. Host since
        #   30: launch. D = 15, W = 40, s = 1: direct 15, indirect 40, unexplained 3. The wait at NxN inherits 40:
        #   long-term 40 / 40 * 40 of load.
        # late_gpu of rank 1: w = 90 - 72 = 18. Stream since 70: the collective 15. Unexplained 3.
        [
            Waited("wait_at_nxn", 0, REDUCE, 1, 40, 40, carried_us=40),
            Waited("late_host", 0, REDUCE, 0, 20, 20),
            Waited("late_host", 1, REDUCE, 1, 60, 60),
            Waited("late_gpu", 0, SYNC, 0, 58, 15, 40, 3),
            Waited("late_gpu", 1, SYNC, 1, 18, 15, 0, 3),
        ],
        [
            Cost(1, "load", 0, "wait_at_nxn", 40, 40),
            Cost(0, "load", 0, "late_host", 20),
            Cost(1, "load", 1, "late_host", 60),
            Cost(0, REDUCE, 0, "late_gpu", 15),
            Cost(1, REDUCE, 1, "late_gpu", 15),
        ],
    ),
    GpuCase(
        "late_rank_of_four",
        "The same with four ranks: one that loads 40 us longer costs three others, their GPUs and their hosts.",
        {rank: loaded(rank, 70 if rank == 3 else 30, 4) for rank in range(4)},
        [
            *(Waited("wait_at_nxn", rank, REDUCE, 3, 40, 40, carried_us=40) for rank in range(3)),
            *(Waited("late_host", rank, REDUCE, rank, 20, 20) for rank in range(3)),
            Waited("late_host", 3, REDUCE, 3, 60, 60),
            *(Waited("late_gpu", rank, SYNC, rank, 58, 15, 40, 3) for rank in range(3)),
            Waited("late_gpu", 3, SYNC, 3, 18, 15, 0, 3),
        ],
        [
            *(Cost(3, "load", rank, "wait_at_nxn", 40, 40) for rank in range(3)),
            *(Cost(rank, "load", rank, "late_host", 20) for rank in range(3)),
            Cost(3, "load", 3, "late_host", 60),
            *(Cost(rank, REDUCE, rank, "late_gpu", 15) for rank in range(4)),
        ],
    ),
    GpuCase(
        "ranks_in_time",
        "Both come to their collectives at once, launched before the GPU needs them.",
        {
            rank: [launch(0, 1), launch(2, 2), did("load", 4, 80), reduced(5, 30, 1, 0), reduced(31, 80, 2, 1)]
            for rank in range(2)
        },
    ),
    GpuCase(
        "stream_that_waits_for_an_event",
        "A kernel on another stream waits for gemm; what was launched after the event is not waited for.",
        {
            rank: [
                launch(0, 1), call(2, 1, "cudaEventRecord", correlation=2), *waits_for_event(4, 4, NCCL, 2, GEMM),
                launch(6, 5), ran("gemm", 3, 50, 1), ran("add", 52, 70, 5, NCCL),
            ]
            for rank in range(2)
        },
        # w = 50 - 6 = 44. Stream since 3: gemm 47. D = 47, s = 44 / 47.
        [Waited("late_stream", rank, "add", rank, 44, 44) for rank in range(2)],
        [Cost(rank, "gemm", rank, "late_stream", 44) for rank in range(2)],
    ),
    GpuCase(
        "backward_on_another_thread",
        "Thread 2 launches the third kernel late: since the second launch, by thread 1, it has computed gradients.",
        {
            0: [
                *late_launch(did("load", 2, 60), at=60, end=80), did("gradients", 62, 140, thread=2),
                launch(140, 3, thread=2), ran("third", 145, 200, 3),
            ],
            1: BUSY,
        },
        # The first wait as in host_that_loads. Then w = 140 - 80 = 60. Host since 60: thread 2 has nothing until 62,
        # when the main thread is in its launch; then gradients 78. D: gradients 78, launch 2. s = 60 / 80.
        [Waited("late_host", 0, "second", 0, 35, 35), Waited("late_host", 0, "third", 0, 60, 60)],
        [
            Cost(0, "load", 0, "late_host", 35),
            Cost(0, LAUNCH, 0, "late_host", 1.5),
            Cost(0, "gradients", 0, "late_host", 58.5),
        ],
    ),
    GpuCase(
        "rank_whose_host_waits_for_its_gpu",
        "The host of rank 1 comes late to gloo because it waits for a kernel that takes 40 us longer.",
        {
            rank: [
                did("gloo:all_reduce", 0, 10), launch(10, 1), sync(12, end + 3), ran("gemm", 15, end, 1),
                did("gloo:all_reduce", end + 3, 100),
            ]
            for rank, end in ((0, 35), (1, 75))
        },
        # wait_at_nxn of rank 0: 78 - 38 = 40. Since 10, while the host waits: gemm 60 and 20, and 3 before it.
        # late_gpu: 35 - 12 = 23 and 75 - 12 = 63; gemm 20 and 60, 3 us unexplained.
        [
            Waited("wait_at_nxn", 0, "gloo:all_reduce", 1, 40, 40),
            Waited("late_gpu", 0, SYNC, 0, 23, 20, 0, 3),
            Waited("late_gpu", 1, SYNC, 1, 63, 60, 0, 3),
        ],
        [
            Cost(1, "gemm", 0, "wait_at_nxn", 40),
            Cost(0, "gemm", 0, "late_gpu", 20),
            Cost(1, "gemm", 1, "late_gpu", 60),
        ],
    ),
    GpuCase(
        "second_gpu_of_a_process",
        "One GPU of rank 0 is idle while the other one computes: each waits for itself.",
        {
            0: [
                *late_launch(launch(2, 4), did("load", 4, 60), at=60), launch(62, 3),
                ran("other", 6, 190, 4, GEMM, 1), ran("more", 190, 195, 3, GEMM, 1),
            ],
            1: BUSY,
        },
        [Waited("late_host", 0, "second", 0, 35, 35)],
        [Cost(0, "load", 0, "late_host", 35)],
    ),
    GpuCase(
        "gpu_that_is_busy_on_another_stream",
        "A stream has nothing to do until 60, but its GPU computes on another one.",
        {
            0: [*late_launch(launch(2, 3), did("load", 4, 60), at=60), ran("beside", 6, 70, 3, NCCL)],
            1: BUSY,
        },
    ),
]  # fmt: skip


def through_two_streams(rank: int) -> list[Event]:
    """The host waits for add, which waits for an event behind the collective, in which rank 0 waits for rank 1."""
    late = (30, 70)[rank]
    return [
        launch(0, 1), did("load", 2, late), launch(late, 2), call(late + 2, 1, "cudaEventRecord", correlation=3),
        *waits_for_event(late + 3, 4, GEMM, 3, NCCL), launch(late + 4, 5), sync(late + 6, 155),
        reduced(5, 10, 1, 0), reduced(late + 5, 100, 2, 1), ran("add", 101, 150, 5, GEMM),
    ]  # fmt: skip
