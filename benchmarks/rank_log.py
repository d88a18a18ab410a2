"""The log of ranks: waits, messages and efficiencies of a folded job of many ranks; CPU seconds, memory.

./dev bench rank_log [--ranks 1000] [--events 1e8] [--verbs waits,messages,efficiency] [--keep FOLDER]
"""

import argparse
import json
from collections import Counter
from pathlib import Path

import numpy as np
from measure import STROBE, checked, folder, table

from strobe.model.kinds import PARADIGMS

_AT_ONCE = 500  # iterations
_A_NODE = 64  # ranks
_A_RANK = 5  # events of an iteration: two messages, both ends, and a collective
_COMPUTE_NS, _COPY_NS = 40_000, 2_000
_SEND, _RECEIVE, _WAIT, _ALL, _HALO = 0, 1, 2, 3, 4


class Rank:
    """A process that is written: in every iteration a blocking message around the ring, a halo, and an all-reduce."""

    def __init__(self, path: Path, rank: int, ranks: int) -> None:
        from strobe import native

        self.rank, self.ranks, self.in_calls_ns = rank, ranks, Counter[str]()
        self.out = native.ImportedProcess(str(path), 1 << 20)
        self.main = self.out.region("main", PARADIGMS.index("compiler"), 0)
        names = ("MPI_Send", "MPI_Recv", "MPI_Waitall", "MPI_Allreduce")
        self.region = [self.out.region(name, PARADIGMS.index("mpi"), 0) for name in names]
        self.outer = self.out.path(0xFFFFFFFF, self.main)
        self.path = [self.out.path(self.outer, region) for region in self.region]
        self.location = self.out.location("main thread", 1000 + rank)
        text = self.out.text
        self.world, self.send, self.receive = text("MPI_COMM_WORLD"), text("send"), text("receive")
        integer, of_text = 0, 2
        self.messages = self.out.table(
            "messages",
            [("time_ns", integer), ("direction", of_text), ("peer_rank", integer), ("tag", integer),
             ("communicator", of_text), ("size_bytes", integer), ("request", integer), ("pending_ns", integer),
             ("in_call_ns", integer), ("call_path", integer)],
            False,
        )  # fmt: skip
        self.collectives = self.out.table(
            "folded_collectives",
            [("time_ns", integer), ("duration_ns", integer), ("call_path", integer), ("collective", of_text),
             ("communicator", of_text), ("rank", integer), ("group_size", integer), ("sent_bytes", integer),
             ("received_bytes", integer)],
            False,
        )  # fmt: skip
        self.allreduce = text("MPI_Allreduce")

    def write(self, times: dict[str, np.ndarray]) -> None:
        """Write some iterations, each column that of this rank."""
        at = {name: column[:, self.rank] for name, column in times.items()}
        at["in_all"] = at["all_end"] - at["all_begin"]
        for name in ("in_send", "in_receive", "in_wait", "in_all"):
            self.in_calls_ns[name] += int(at[name].sum())
        count = len(at["begin"])
        left, right = (self.rank - 1) % self.ranks, (self.rank + 1) % self.ranks
        # In the order in which they are complete.
        ends = (
            (at["sent"], self.send, right, 1, 64, None, at["in_send"], _SEND),
            (at["received"], self.receive, left, 1, 64, None, at["in_receive"], _RECEIVE),
            (at["halo"], self.send, right, 7, 4096, at["wait_end"] - at["halo"], at["in_wait"], _WAIT),
            (at["wait_end"], self.receive, left, 7, 4096, at["wait_end"] - at["halo"], at["in_wait"], _WAIT),
        )

        def woven(values: list[object]) -> np.ndarray:
            return np.stack([np.broadcast_to(np.asarray(each, dtype=np.int64), count) for each in values], 1).ravel()

        of_request = woven([end[5] is not None for end in ends]).astype(np.uint8)
        where = np.full(4 * count, self.location, dtype=np.uint32)
        columns = [woven([end[i] for end in ends]) for i in range(5)]
        columns[4:4] = [np.full(4 * count, self.world, dtype=np.int64)]
        pending = woven([0 if end[5] is None else end[5] for end in ends])
        cells = [
            *((i, column, None) for i, column in enumerate(columns)),
            (6, np.arange(4 * count), of_request),
            (7, pending, of_request),
            (8, woven([end[6] for end in ends]), None),
            (9, woven([self.path[end[7]] for end in ends]), None),
        ]
        self.out.rows(self.messages, where, cells)
        same = np.ones(count, dtype=np.int64)
        values = (
            at["all_begin"], at["in_all"], self.path[_ALL] * same, self.allreduce * same,
            self.world * same, self.rank * same, self.ranks * same, 8 * same, 8 * same,
        )  # fmt: skip
        where = np.full(count, self.location, dtype=np.uint32)
        self.out.rows(self.collectives, where, [(i, value, None) for i, value in enumerate(values)])

    def finish(self, end_ns: int, iterations: int) -> None:
        """Write what was folded, and the one span that stays."""
        of_calls = (self.in_calls_ns[name] for name in ("in_send", "in_receive", "in_wait", "in_all"))
        for path, total in zip(self.path, of_calls, strict=True):
            self.out.totals(self.location, path, iterations, total, total)
        self.out.totals(self.location, self.outer, 0, 0, -sum(self.in_calls_ns.values()))
        where, region = (np.full(1, number, dtype=np.uint32) for number in (self.location, self.main))
        self.out.spans(where, np.zeros(1, dtype=np.int64), np.full(1, end_ns), region)
        description = {"argv": ["./solver"], "host": f"node{self.rank // _A_NODE:04d}", "main": self.rank == 0}
        note = {"rank": self.rank, "ranks": self.ranks}
        self.out.finish(10_000 + self.rank, 0, json.dumps(description), json.dumps(note), "closed")


def make(path: Path, ranks: int, events: int) -> None:
    """Simulate and write the job. Times follow the rules of MPI: who needs another one leaves after it has come."""
    path.mkdir(parents=True)
    random = np.random.default_rng(1)
    written = [Rank(path / f"process-{rank + 1}.blocks", rank, ranks) for rank in range(ranks)]
    iterations, now = events // (ranks * _A_RANK), np.zeros(ranks, dtype=np.int64)

    def some(mean: int) -> np.ndarray:
        return random.exponential(mean, ranks).astype(np.int64) + 200

    for first in range(0, iterations, _AT_ONCE):
        kept: dict[str, list[np.ndarray]] = {}
        for _ in range(min(_AT_ONCE, iterations - first)):
            halo = now + some(_COMPUTE_NS)
            sent = halo + some(_COMPUTE_NS // 4)
            send_end = sent + some(_COPY_NS)
            asked = send_end + 100
            received = np.maximum(asked, np.roll(sent, 1)) + some(_COPY_NS)
            wait = received + some(_COMPUTE_NS // 4)
            wait_end = np.maximum(wait, np.roll(halo, 1)) + some(_COPY_NS)
            all_begin = wait_end + some(_COMPUTE_NS // 10)
            all_end = np.full(ranks, all_begin.max()) + some(_COPY_NS)
            of_now = {
                "begin": now, "halo": halo, "sent": sent, "in_send": send_end - sent, "received": received,
                "in_receive": received - asked, "in_wait": wait_end - wait, "wait_end": wait_end,
                "all_begin": all_begin, "all_end": all_end,
            }  # fmt: skip
            for name, values in of_now.items():
                kept.setdefault(name, []).append(values)
            now = all_end
        times = {name: np.stack(values) for name, values in kept.items()}
        for rank in written:
            rank.write(times)
    for rank in written:
        rank.finish(int(now.max()), iterations)
    ended = {"exit_code": 0, "ended_ns": int(now.max())}
    job = {"format_version": 1, "zero_ns": 0, "command": ["./solver"], "ended": ended}
    job["imported"] = {"processes": _clocks(ranks)}  # a recording has readings of its clocks instead
    (path / "job.json").write_text(json.dumps(job))


def _clocks(ranks: int) -> dict[str, dict[str, object]]:
    """Return what is noted of the clocks of the processes: those of other nodes were compared with the first."""
    clocks = {"clock": "compared while the program started", "clock_error_ns": 500}
    return {f"process-{rank + 1}": {**clocks, "clock_error_ns": 500 * (rank >= _A_NODE)} for rank in range(ranks)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=1000)
    parser.add_argument("--events", type=float, default=1e8)
    parser.add_argument("--verbs", default="waits,messages,efficiency")
    parser.add_argument("--keep", type=Path)
    args = parser.parse_args()
    with folder() as work:
        job = args.keep or work / "job.strobe"
        if not job.exists():
            make(job, args.ranks, int(args.events))
        rows = []
        for verb in args.verbs.split(","):
            done = checked([STROBE, verb, str(job)], work)
            rows.append({"verb": verb, "CPU s": round(done.cpu_s, 1), "largest process MiB": done.peak_kib >> 10})
        print(table(rows))


if __name__ == "__main__":
    main()
