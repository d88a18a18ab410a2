"""The step tree of a class: what its steps do, by place. A node is a call path without what its name has by chance.

The lanes of a tree are those of decision 0016: the time without inner calls of all nodes of a lane, and what closes
it, add up to the lane. `host`: the thread of the loop. `threads`: all others, workers of a loader, too. `GPU`: kernels
below the operator that launched them; `several at once` takes away what counts twice, and `idle` is the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from strobe.comparison.counts import lost
from strobe.errors import UsageError
from strobe.gpu.devices import Device, devices
from strobe.gpu.kernel_names import short_name
from strobe.gpu.lanes import lanes
from strobe.gpu.launches import launches
from strobe.gpu.work import divided
from strobe.model.kinds import GPU_CALL_PARADIGMS
from strobe.steps.selection import Selection, select, select_steps
from strobe.steps.steps import find_steps
from strobe.steps.thread_spans import main_location
from strobe.sums.path_statistics import location_statistics, merged_paths
from strobe.tables.column_arrays import Ints, add_at, alike, combined, interval_at
from strobe.trace.definition_rows import Region, location_rows, path_tree, process_rows, region_rows
from strobe.trace.trace import Trace

HOST, THREADS, GPU = LANES = ("host", "threads", "GPU")
OUTSIDE, IDLE, AT_ONCE = "outside of recorded calls", "idle", "several at once"
# What closes a lane.
CLOSING = (OUTSIDE, IDLE, AT_ONCE)
# Steps in detail by which the spread of a class is known, and of which the order of calls is.
_MOST_KEPT = 32
_ORDERED = 3
_LOOP = "loop"
_KEYS = ("column", "lane", "path", "region")
# Addresses, hashes, and the numbers of marks, of modules and of compiled kernels.
_CHANCE = re.compile(
    r" ?(at )?\b0x[0-9a-fA-F]+|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b|(?<=[#:]) ?\d+$"
    r"|(?<=^nn\.Module: )(\w+?)_\d+$|(?<=^triton_)(\w+?)_\d+$"
)

_OF_VENDOR = re.compile(r"^(cuda|hip|cu)(?=[A-Z])|(Async|WithStream|R\d+)?(_v\d+)?(_ptsz)?$")


def normalised(name: str, paradigm: str = "", role: str = "") -> str:
    """Return a name without addresses, hashes and numbers; that of a kernel also without template and arguments.

    Calls of the GPU's interface are called the same with CUDA and HIP; all launches are.
    """
    if role == "kernel":
        name = short_name(name)
    elif paradigm in GPU_CALL_PARADIGMS:
        name = "launch" if "launch" in name.lower() else _OF_VENDOR.sub("", name)
    return _CHANCE.sub(lambda found: found[2] or found[3] or "", name)


@dataclass
class Node:
    """A place in the step. `parent`: its number, -1 at the root. Sums over all steps, ns without inner calls.

    least_ns, most_ns: of a call, all in all. first: its place in the order of a usual step. step_calls, step_ns: of
    each step in `StepTree.kept`.
    """

    lane: str
    key: str
    name: str
    kind: str  # paradigm and role
    parent: int
    step_calls: Ints
    step_ns: Ints
    calls: int = 0
    ns: int = 0
    least_ns: int = 1 << 60
    most_ns: int = 0
    first: int = 1 << 60
    throttled: bool = False  # only its first calls were recorded


@dataclass
class StepTree:
    """What the steps of a class do. Nodes come after their parents.

    counts: by lane, the number of steps (of GPUs: lanes) that it holds; total_ns: their sum. kept: process and number
    of steps by which the spread is known. orders: of some of them, the nodes that a node calls, in order. processes:
    those that run them. note: what else a step is.
    """

    name: str
    kept: Sequence[tuple[int, int]]
    nodes: list[Node] = field(default_factory=list)
    counts: dict[str, float] = field(default_factory=lambda: dict.fromkeys(LANES, 0))
    total_ns: dict[str, int] = field(default_factory=lambda: dict.fromkeys(LANES, 0))
    orders: list[dict[int, list[int]]] = field(default_factory=list)
    processes: int = 1
    note: str = ""

    @cached_property
    def children(self) -> list[list[int]]:
        """The nodes directly inside of each; the last entry has those at the root."""
        found: list[list[int]] = [[] for _ in range(len(self.nodes) + 1)]
        for number, node in enumerate(self.nodes):
            found[node.parent].append(number)
        return found

    @cached_property
    def places(self) -> dict[tuple[str, ...], float]:
        """How often the path of each node on the host is called per step: by this, classes are compared."""
        paths: list[tuple[str, ...]] = []
        for node in self.nodes:
            paths.append((*(paths[node.parent] if node.parent >= 0 else ()), node.key))
        called = (
            (path, node) for path, node in zip(paths, self.nodes, strict=True) if node.lane == HOST and node.calls
        )
        return {path: node.calls / self.counts[HOST] for path, node in called}

    def joined(self, steps: int) -> StepTree:
        """Return the tree of steps that are so many of these each."""
        nodes = [replace(each, step_calls=each.step_calls * steps, step_ns=each.step_ns * steps) for each in self.nodes]
        counts = {lane: count / steps for lane, count in self.counts.items()}
        return replace(self, nodes=nodes, counts=counts, note=f"{steps} steps count as one")


def step_tree(trace: Trace, name: str, numbers: Mapping[int, Ints] | None, rank: int | None = None) -> StepTree:
    """Return the tree of some steps, by process and number; None: of the run, as one step of each main process.

    `rank`: of the run, only that rank.
    """
    return _Builder(trace, name, numbers, rank).tree


class _Builder:
    def __init__(self, trace: Trace, name: str, numbers: Mapping[int, Ints] | None, rank: int | None) -> None:
        self._trace, self._regions = trace, region_rows(trace)
        self._steps = {} if numbers is None else {p.process: p for p in find_steps(trace).processes}
        self._numbers = dict(numbers or {})
        whole = {each.process for each in process_rows(trace) if each.main and rank in (None, each.rank)}
        self._processes = whole if numbers is None else {each for each, of in self._numbers.items() if len(of)}
        chosen = self._selected() if numbers is not None else select(trace, "all")
        kept = [(p, k) for p in sorted(self._processes if self._steps else ()) for k in self._kept(p)]
        self._column = {step: at for at, step in enumerate(kept[:: -(-len(kept) // _MOST_KEPT) or 1])}
        self.tree = StepTree(name, list(self._column), processes=len(self._processes))
        self._node_of: dict[tuple[int, str, str], int] = {}
        self._throttled = {name.partition(" (")[0] for name in lost(trace)[1]}
        self._keys = [normalised(each.name, each.paradigm, each.role) for each in self._regions]
        first: dict[str, int] = {}
        region_of = np.array([first.setdefault(key, at) for at, key in enumerate(self._keys)], dtype=np.int64)
        parent, region = path_tree(trace)
        self._merged, self._parent, self._region = merged_paths(parent, region, region_of), parent, region
        # By lane, the node of each merged path.
        self._nodes = {lane: np.full(len(parent) + 1, -1, dtype=np.int64) for lane in (HOST, THREADS)}
        mains = (main_location(trace, process) for process in self._processes)
        self._mains = {each for each in mains if each is not None}
        self._threads = [
            each for each in location_rows(trace) if each.kind == "thread" and each.process in self._all_processes()
        ]
        for location in self._threads:
            self._add_host(chosen, location.location)
        self._add_kept()
        self._close_host(chosen)
        for device in devices(trace):
            if device.process in self._processes:
                self._add_gpu(device)
        self._close_gpu()

    def _selected(self) -> Selection:
        """Return the steps of which all is known: of folded ones that are not a whole class, only records remain."""
        chosen = select_steps(self._trace, self._numbers)
        if chosen.step_count == max(map(len, self._numbers.values())):
            return chosen
        self._numbers = {process: np.array(self._kept(process), dtype=np.int64) for process in self._numbers}
        self._processes = {process for process, numbers in self._numbers.items() if len(numbers)}
        if not self._processes:
            raise UsageError("no such step was kept in detail", do="strobe steps lists which were: column detail")
        return select_steps(self._trace, self._numbers)

    def _all_processes(self) -> set[int]:
        """Return the processes of the steps, and those that they started."""
        rows, own = process_rows(self._trace), set(self._processes)
        started = {(rows[each].host, rows[each].pid) for each in own}
        return own | {each.process for each in rows if not each.main and (each.host, each.parent_pid) in started}

    def _kept(self, process: int) -> list[int]:
        steps, numbers = self._steps[process], self._numbers[process]
        kept: list[int] = numbers[steps.kept[numbers - steps.first_number]].tolist()
        return kept

    def _node(self, lane: str, key: str, name: str, kind: str, parent: int) -> int:
        number = self._node_of.setdefault((parent, lane, key), len(self.tree.nodes))
        if number == len(self.tree.nodes):
            zeros = np.zeros(len(self.tree.kept), dtype=np.int64)
            self.tree.nodes.append(Node(lane, key, name, kind, parent, zeros, zeros.copy()))
        return number

    def _add_host(self, chosen: Selection, location: int) -> None:
        sums = location_statistics(self._trace, chosen, location)
        calls, own = (np.zeros(len(self._merged), dtype=np.int64) for _ in range(2))
        np.add.at(calls, self._merged, sums.calls)
        np.add.at(own, self._merged, sums.own_ns)
        least, most = np.full(len(calls), 1 << 60), np.zeros(len(calls), dtype=np.int64)
        np.minimum.at(least, self._merged[sums.calls > 0], sums.min_ns[sums.calls > 0])
        np.maximum.at(most, self._merged, sums.max_ns)
        lane = self._lane(location)
        for path in np.flatnonzero(calls).tolist():
            above = int(self._parent[path])
            while above >= 0 and not calls[self._merged[above]]:
                above = int(self._parent[above])
            parent = int(self._nodes[lane][self._merged[above]]) if above >= 0 else -1
            region = self._regions[self._region[path]]
            if region.role == _LOOP:
                # The recorder follows some loops, and not in every run: they belong to what holds them.
                self._nodes[lane][path] = parent
                if parent >= 0:
                    self.tree.nodes[parent].ns += int(own[path])
                continue
            number = self._node(lane, self._keys[region.region], region.name, kind_of(region), parent)
            self._nodes[lane][path] = number
            node = self.tree.nodes[number]
            node.throttled = node.name in self._throttled
            node.calls += int(calls[path])
            node.ns += int(own[path])
            node.least_ns, node.most_ns = min(node.least_ns, int(least[path])), max(node.most_ns, int(most[path]))

    def _lane(self, location: int) -> str:
        return HOST if location in self._mains else THREADS

    def _add_kept(self) -> None:
        """Add what each step in detail has of the nodes on the host, and the order of calls in the most usual ones."""
        usual = sorted(self._column, key=self._distance)[:_ORDERED]
        for (process, number), column in self._column.items():
            steps = self._steps[process]
            begin, end = (int(of[number - steps.first_number]) for of in (steps.start_ns, steps.end_ns))
            for location in self._threads:
                if location.process != process and location.process in self._processes:
                    continue
                spans = self._trace.span_arrays(location.location, begin - 1, end)
                inside = (spans["start_ns"] >= begin) & (spans["start_ns"] < end)
                node = self._nodes[self._lane(location.location)][self._merged[spans["call_path"][inside]]]
                first, group = alike([node])
                calls, own = (np.zeros(len(first), dtype=np.int64) for _ in range(2))
                counts = np.array([region.role != _LOOP for region in self._regions], dtype=bool)[
                    spans["region"][inside]
                ]
                add_at(calls, group, counts.astype(np.int64))
                add_at(own, group, spans["self_ns"][inside])
                for each, count, ns in zip(node[first].tolist(), calls.tolist(), own.tolist(), strict=True):
                    if each >= 0:
                        self.tree.nodes[each].step_calls[column] += count
                        self.tree.nodes[each].step_ns[column] += ns
                if (process, number) in usual and location.location in self._mains:
                    self._add_order(node[counts].tolist())

    def _distance(self, step: tuple[int, int]) -> float:
        times = {each: self._duration(each) for each in self._column}
        return abs(times[step] - float(np.median(list(times.values()))))

    def _duration(self, step: tuple[int, int]) -> int:
        steps = self._steps[step[0]]
        return int(steps.duration_ns[step[1] - steps.first_number])

    def _add_order(self, sequence: Sequence[int]) -> None:
        order: dict[int, list[int]] = {}
        for place, number in enumerate(sequence):
            if number >= 0:
                node = self.tree.nodes[number]
                node.first = min(node.first, place)
                order.setdefault(node.parent, []).append(number)
        self.tree.orders.append(order)

    def _close_host(self, chosen: Selection) -> None:
        """Let the lane add up to the steps."""
        tree = self.tree
        if self._steps:
            for process in self._processes:
                at = self._numbers[process] - self._steps[process].first_number
                tree.total_ns[HOST] += int(self._steps[process].duration_ns[at].sum())
                tree.counts[HOST] += len(at)
        else:
            facts = [location_rows(self._trace)[main] for main in self._mains]
            tree.total_ns[HOST] = sum(each.last_ns - each.first_ns for each in facts)
            tree.counts[HOST] = max(1, len(facts))
        tree.counts[THREADS] = tree.counts[HOST]
        inside = [node for node in tree.nodes if node.lane == HOST]
        tree.total_ns[THREADS] = sum(node.ns for node in tree.nodes if node.lane == THREADS)
        in_step = sum((node.step_ns for node in inside), np.zeros(len(tree.kept), dtype=np.int64))
        durations = np.array([self._duration(each) for each in tree.kept], dtype=np.int64)
        self._closing(HOST, OUTSIDE, tree.total_ns[HOST] - sum(node.ns for node in inside), durations - in_step)

    def _closing(self, lane: str, key: str, ns: int, step_ns: Ints) -> None:
        node = self.tree.nodes[self._node(lane, key, key, "", -1)]
        node.ns, node.step_ns = ns, step_ns

    def _add_gpu(self, device: Device) -> None:
        """Add the lanes of a GPU, and what ran for their steps, below what launched it."""
        tree, steps = self.tree, self._steps.get(device.process)
        idle, columns = self._node(GPU, IDLE, IDLE, "", -1), np.full(0 if steps is None else len(steps), -1)
        if steps is None:
            sums = divided(self._trace, device)
            tree.counts[GPU] += 1
            tree.total_ns[GPU] += int(sums.sum())
            tree.nodes[idle].ns += int(sums[0])
            wanted = np.zeros(0, dtype=bool)
        else:
            found = lanes(self._trace, device, steps)
            # Kernels of folded steps are not known by what launched them.
            wanted = (
                found.known
                & steps.kept
                & np.isin(np.arange(len(steps)), self._numbers[device.process] - steps.first_number)
            )
            tree.counts[GPU] += int(wanted.sum())
            tree.total_ns[GPU] += int(found.set_ns[wanted].sum())
            tree.nodes[idle].ns += int(found.set_ns[wanted, 0].sum())
            for (process, number), column in self._column.items():
                if process == device.process:
                    columns[number - steps.first_number] = column
                    tree.nodes[idle].step_ns[column] += int(found.set_ns[number - steps.first_number, 0])
        for work, who in launches(self._trace, device):
            called = np.where(who.call.row >= 0, who.call.start_ns, work.start_ns)
            step = np.full(len(work), -1) if steps is None else interval_at(steps.start_ns, steps.end_ns, called)
            counts = np.ones(len(work), dtype=bool) if steps is None else (step >= 0) & np.append(wanted, False)[step]
            location = np.where(who.code.row >= 0, who.code.location, who.operator.location)
            rows = {
                "column": np.full(len(work), -1) if steps is None else np.append(columns, -1)[step],
                "lane": np.isin(location, list(self._mains)).astype(np.int64),
                "path": who.path,
                "region": work.region.astype(np.int64),
                "calls": np.ones(len(work), dtype=np.int64),
                **dict.fromkeys(("ns", "least", "most"), work.end_ns - work.start_ns),
                "first": work.start_ns,
            }
            joins = {"calls": np.add, "ns": np.add, "least": np.minimum, "most": np.maximum, "first": np.minimum}
            joined, _ = combined({name: each[counts] for name, each in rows.items()}, _KEYS, joins)
            for column, lane, path, region, calls, ns, least, most, first in zip(
                *(each.tolist() for each in joined.values()), strict=True
            ):
                facts, parent = self._regions[region], self._launcher(HOST if lane else THREADS, path)
                node = tree.nodes[self._node(GPU, self._keys[region], self._keys[region], kind_of(facts), parent)]
                node.calls += calls
                node.ns += ns
                node.least_ns, node.most_ns = min(node.least_ns, least), max(node.most_ns, most)
                node.first = min(node.first, first)
                if column >= 0:
                    node.step_calls[column] += calls
                    node.step_ns[column] += ns

    def _launcher(self, lane: str, path: int) -> int:
        """Return the node of what launched work: the innermost that is not a call of the GPU's interface."""
        while path >= 0:
            number = int(self._nodes[lane][self._merged[path]])
            if number >= 0 and self._regions[self._region[path]].paradigm not in GPU_CALL_PARADIGMS:
                return number
            path = int(self._parent[path])
        return -1

    def _close_gpu(self) -> None:
        tree = self.tree
        if not tree.counts[GPU]:
            return
        inside = [node for node in tree.nodes if node.lane == GPU]
        self._closing(
            GPU, AT_ONCE, tree.total_ns[GPU] - sum(node.ns for node in inside), np.zeros(len(tree.kept), dtype=np.int64)
        )


def kind_of(region: Region) -> str:
    """Return by what a name of another kind is told apart: calls of CUDA and HIP are of one."""
    paradigm = "gpu" if region.paradigm in GPU_CALL_PARADIGMS else region.paradigm
    return f"{paradigm} {region.role}"
