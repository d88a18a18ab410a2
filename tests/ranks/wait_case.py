"""The form of hand-computed wait states: what each rank of a small MPI program did and when, and who waited.

The definitions are those of Scalasca (`MPI.pattern`), and of strobe for non-blocking collectives. E and L are the
enter and the leave of a call. A wait is never negative and never longer than its call:

    late_sender         min(E_send, L_recv) - E_recv: of the call that completes a receive, or of a blocking probe.
                        Calls that complete several messages have the maximum. Test calls never wait.
    wrong_order         the part of late_sender whose message was sent after one that was received later; only the
                        last 100 late senders of a rank. A message in the same call is not received later.
    late_receiver       E_receive - E_send if L_send > E_receive. E_receive is of the call that posted the receive;
                        E_send, L_send are of MPI_Send, MPI_Ssend or the wait that completes a send (the maximum, and
                        none if that wait has a late sender). MPI_Bsend, MPI_Sendrecv and test calls never wait for a
                        receiver.
    wait_at_barrier     min(max E, L_i) - E_i
    barrier_completion  L_i - max(min L, min(max E, L_i))
    wait_at_nxn, nxn_completion: the same for all-reduce, all-gather, reduce-scatter and all-to-all, also those whose
                        counts differ (MPI_Alltoallv, MPI_Alltoallw), which Scalasca leaves out
    late_broadcast      min(E_root, L_i) - E_i: bcast and scatter, not the root
    early_reduce        min(max E of the others that send bytes, L_root) - E_root: reduce and gather, only the root
    early_scan          min(max E_j, L_i) - E_i over the ranks j <= i of the communicator: scan and exscan
    late_collective     min(max P_j, L_i) - E_i: of the call that waits for a non-blocking collective. P_j is the
                        enter of the call that posted it on rank j.
    wait_at_fence       min(max E, L_i) - E_i over the ranks of the window, by MPI_RMA.pattern as the following ones
    late_post           E_post - E of the one call of the origin that the post comes in: MPI_Win_start, an access to
                        this target, or MPI_Win_complete. A call that waits for several targets has the maximum.
    early_wait          min(E_complete, L_wait) - E_wait: of the last origin to complete
    late_complete       the part of early_wait after the last access of that origin: min(E_complete, L_wait) -
                        max(E_wait, L_access)
    lock_contention     how much of [E_lock, L_lock] others hold the same target of the window in a way that excludes
                        this lock: from L_lock to L_unlock; of shared locks only exclusive ones exclude another one

All waits are those of the formula, of times as they are: no clock is repaired, and no wait is set aside as less than
the error of the clocks.
"""

from dataclasses import dataclass, field, replace

TO_ALL = ("bcast", "scatter", "scatterv")
EXCHANGES = (
    *("MPI_Allgather", "MPI_Allgatherv", "MPI_Alltoall", "MPI_Alltoallv", "MPI_Alltoallw"),
    *("MPI_Reduce_scatter", "MPI_Reduce_scatter_block"),
)


@dataclass(frozen=True)
class Event:
    """What a rank did. Peers and roots are ranks in the communicator. Kinds, and the fields that they use:

    enter, leave               name (the function)
    send, receive              peer, tag, communicator, sent (bytes)
    isend, irecv_complete      the same, request
    isend_complete, irecv_request, request_test, request_cancelled, collective_request: request
    probe                      as send, request (the number of the matched message)
    mrecv                      sent, request (the same number)
    collective_begin           none
    collective_end             name (`allreduce`), communicator, peer (the root, or None), sent, received (bytes)
    collective_complete        the same, request
    fence_begin                none
    fence_end                  communicator (its window)
    group_sync                 communicator (its window), peers
    lock, unlock               communicator (its window), peer (the target), name (`shared` or nothing)
    put                        communicator (its window), peer (the target), sent, request
    put_complete               communicator (its window), request
    """

    kind: str
    name: str = ""
    peer: int | None = None
    tag: int = 0
    communicator: str = "world"
    sent: int = 0
    received: int = 0
    request: int = -1
    time_ns: int = -1
    peers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Communicator:
    """Its name, which others may have, too; the ranks in the job of its ranks 0, 1, ..."""

    name: str
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class Wait:
    """Calls of a function on a rank of the job that waited: how often and how long, all together.

    within: the function that called it, where several places of the program wait differently. partial: somebody who
    took part is not in the trace.
    """

    state: str
    rank: int
    function: str
    count: int
    wait_ns: int
    within: str | None = None
    partial: bool = False


@dataclass(frozen=True)
class Case:
    """A program and its waits; all others are zero.

    ranks: events by rank of the job, in order of time. communicators: by a key that events use; `world` is always
    there. job_ranks: also those that are missing in the trace. clipped: how many waits end with their call because the
    clocks are wrong and the awaited came even later.
    """

    name: str
    what: str
    ranks: dict[int, list[Event]]
    waits: list[Wait]
    communicators: dict[str, Communicator] = field(default_factory=dict)
    job_ranks: int = 0
    clipped: int = 0

    def __post_init__(self) -> None:
        size = self.job_ranks or len(self.ranks)
        world = {"world": Communicator("MPI_COMM_WORLD", tuple(range(size)))}
        object.__setattr__(self, "job_ranks", size)
        object.__setattr__(self, "communicators", world | self.communicators)


def call(enter: int, leave: int, function: str, *records: Event) -> list[Event]:
    """Return a call of MPI. What it begins is 1 ns after its enter; what it ends, or learns, 1 ns before its leave.

    Collectives begin and end with their call.
    """
    late = (
        "receive",
        "irecv_request",
        "irecv_complete",
        "isend_complete",
        "request_test",
        "request_cancelled",
        "probe",
        "mrecv",
        "put_complete",
    )
    on_edge = dict.fromkeys(("collective_begin", "collective_request", "fence_begin"), enter)
    on_edge |= dict.fromkeys(("collective_end", "collective_complete", "fence_end"), leave)
    times = [on_edge.get(each.kind, leave - 1 if each.kind in late else enter + 1) for each in records]
    inside = [replace(each, time_ns=time) for each, time in zip(records, times, strict=True)]
    return around(enter, leave, function, sorted(inside, key=lambda each: each.time_ns))


def around(enter: int, leave: int, function: str, *inside: list[Event]) -> list[Event]:
    """Return a call of a function, with what it called."""
    called = [each for events in inside for each in events]
    return [Event("enter", function, time_ns=enter), *called, Event("leave", function, time_ns=leave)]


def send(peer: int, tag: int = 0, communicator: str = "world", sent: int = 8) -> Event:
    return Event("send", peer=peer, tag=tag, communicator=communicator, sent=sent)


def receive(peer: int, tag: int = 0, communicator: str = "world", sent: int = 8) -> Event:
    return Event("receive", peer=peer, tag=tag, communicator=communicator, sent=sent)


def isend(peer: int, request: int, tag: int = 0, communicator: str = "world", sent: int = 8) -> Event:
    return Event("isend", peer=peer, tag=tag, communicator=communicator, sent=sent, request=request)


def sent_by(request: int) -> Event:
    """Return the completion of an isend."""
    return Event("isend_complete", request=request)


def posted(request: int) -> Event:
    """Return the beginning of an irecv."""
    return Event("irecv_request", request=request)


def received_by(peer: int, request: int, tag: int = 0, communicator: str = "world", sent: int = 8) -> Event:
    """Return the completion of an irecv."""
    return Event("irecv_complete", peer=peer, tag=tag, communicator=communicator, sent=sent, request=request)


def tested(request: int) -> Event:
    """Return a test of a request that is not complete."""
    return Event("request_test", request=request)


def begun(request: int) -> Event:
    """Return the beginning of a non-blocking collective."""
    return Event("collective_request", request=request)


def ended(
    kind: str, request: int, root: int | None = None, sent: int = 8, received: int = 8, communicator: str = "world"
) -> Event:
    """Return the completion of a non-blocking collective."""
    return Event("collective_complete", kind, root, 0, communicator, sent, received, request)


def mpi_send(enter: int, leave: int, peer: int, tag: int = 0, communicator: str = "world") -> list[Event]:
    return call(enter, leave, "MPI_Send", send(peer, tag, communicator))


def mpi_recv(enter: int, leave: int, peer: int, tag: int = 0, communicator: str = "world") -> list[Event]:
    return call(enter, leave, "MPI_Recv", receive(peer, tag, communicator))


def mpi_sendrecv(enter: int, leave: int, to: int, source: int) -> list[Event]:
    return call(enter, leave, "MPI_Sendrecv", send(to), receive(source))


def mpi_isend(enter: int, peer: int, request: int, tag: int = 0) -> list[Event]:
    """Return a call that takes 10 ns."""
    return call(enter, enter + 10, "MPI_Isend", isend(peer, request, tag))


def mpi_irecv(enter: int, request: int) -> list[Event]:
    """Return a call that takes 10 ns."""
    return call(enter, enter + 10, "MPI_Irecv", posted(request))


def mpi_collective(
    enter: int,
    leave: int,
    function: str,
    root: int | None = None,
    sent: int | None = None,
    received: int | None = None,
    communicator: str = "world",
) -> list[Event]:
    """Return a blocking collective. 8 bytes are sent and received, if not given otherwise; in a barrier none."""
    kind = function.removeprefix("MPI_").lower()
    usual = 0 if kind == "barrier" else 8
    sent, received = usual if sent is None else sent, usual if received is None else received
    end = Event("collective_end", kind, root, 0, communicator, sent, received)
    return call(enter, leave, function, Event("collective_begin"), end)


def of_root(enter: int, leave: int, function: str, root: int, ranks: int, communicator: str = "world") -> list[Event]:
    """Return the root's part in a rooted collective of so many ranks, with 8 bytes of each rank."""
    to_all = function.removeprefix("MPI_").lower() in TO_ALL
    sent, received = (8 * ranks, 8) if to_all else (8, 8 * ranks)
    return mpi_collective(enter, leave, function, root, sent, received, communicator)


def of_other(enter: int, leave: int, function: str, root: int, communicator: str = "world") -> list[Event]:
    """Return the part of a rank that is not the root in a rooted collective, with 8 bytes of each rank."""
    to_all = function.removeprefix("MPI_").lower() in TO_ALL
    return mpi_collective(enter, leave, function, root, 0 if to_all else 8, 8 if to_all else 0, communicator)


def win_fence(enter: int, leave: int, window: str = "world") -> list[Event]:
    return call(enter, leave, "MPI_Win_fence", Event("fence_begin"), Event("fence_end", communicator=window))


def win_post(enter: int, leave: int, *origins: int) -> list[Event]:
    return call(enter, leave, "MPI_Win_post", Event("group_sync", peers=origins))


def win_start(enter: int, leave: int, *targets: int) -> list[Event]:
    return call(enter, leave, "MPI_Win_start", Event("group_sync", peers=targets))


def win_complete(enter: int, leave: int, *targets: int, done: tuple[int, ...] = ()) -> list[Event]:
    """Return the end of accesses to some targets; `done`: the numbers of their puts, which are complete."""
    puts = [Event("put_complete", request=number) for number in done]
    return call(enter, leave, "MPI_Win_complete", Event("group_sync", peers=targets), *puts)


def win_wait(enter: int, leave: int, *origins: int) -> list[Event]:
    return call(enter, leave, "MPI_Win_wait", Event("group_sync", peers=origins))


def win_lock(enter: int, leave: int, target: int, kind: str = "", window: str = "world") -> list[Event]:
    """Return the request of an exclusive lock, or of a `shared` one."""
    return call(enter, leave, "MPI_Win_lock", Event("lock", kind, target, communicator=window))


def win_unlock(enter: int, leave: int, target: int, window: str = "world") -> list[Event]:
    return call(enter, leave, "MPI_Win_unlock", Event("unlock", peer=target, communicator=window))


def mpi_put(enter: int, leave: int, target: int, number: int) -> list[Event]:
    return call(enter, leave, "MPI_Put", Event("put", peer=target, sent=8, request=number))
