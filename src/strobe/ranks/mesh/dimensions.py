"""The mesh of a job: dimensions, each of which is a set of groups that do the same, and the coordinates of ranks."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from strobe.ranks.mesh.groups import PHASES, RECEIVE, SEND, Communication, Group, GroupCalls, communication
from strobe.tables.column_arrays import Bools, Ints
from strobe.trace.trace import Trace
from strobe.trace.trace_cache import cached_on_trace

DATA, SHARDED, TENSOR, SEQUENCE, PIPELINE, EXPERT = "data", "sharded", "tensor", "sequence", "pipeline", "expert"
BY_NAME, BY_USE = "name", "use"
# Words of names and descriptions: those of DeviceMesh's dimensions (`mesh_tp`), Megatron, DeepSpeed and torchtitan.
# The first that fits counts.
_WORDS = (
    (EXPERT, r"ep|etp|expert\w*|moe"),
    (PIPELINE, r"pp|pipe\w*|stages?"),
    (TENSOR, r"tp|tensor|mp"),
    (SEQUENCE, r"cp|sp|ulysses|context|sequence"),
    (SHARDED, r"fsdp|shard\w*"),
    (DATA, r"dp|ddp|data|replicas?|replicate"),
)
_NAMES = [(kind, re.compile(rf"(?:^|[_\W\d])(?:{words})(?:$|[_\W\d])", re.IGNORECASE)) for kind, words in _WORDS]
_NOTHING = re.compile(r"(mesh_)?default(_pg)?|undefined|\d*|world", re.IGNORECASE)  # descriptions without a meaning
# What moves less does not decide what a group is for: a loss, a norm, numbers of tokens.
_FEW_BYTES = 64  # in a call
_LEAST_PART = 0.01  # of the bytes of a group
_UNKNOWN_BYTES = 1 << 20  # of a call


@dataclass(frozen=True)
class Dimension:
    """Groups of as many ranks each that do the same and have no rank in common.

    name: what the program calls it, "" unknown. kind: what it is for, "" unknown. source: whether the kind is known by
    the name or by what its ranks communicate (BY_NAME, BY_USE). also: other kinds of communication in the same groups.
    groups: their ranks, each in its own order. calls: of all its groups.
    """

    name: str
    kind: str
    source: str
    also: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    calls: GroupCalls

    @property
    def size(self) -> int:
        """Ranks in each group."""
        return max(map(len, self.groups))

    @property
    def title(self) -> str:
        """Its name in tables: that of the program, else its kind, else its size."""
        return self.name or self.kind or f"groups of {self.size}"

    def place(self, rank: int) -> int | None:
        """Return the coordinate of a rank: its place in its group; None if it is in none."""
        return next((group.index(rank) for group in self.groups if rank in group), None)


@dataclass(frozen=True)
class Mesh:
    """Dimensions, those with most groups first, and the ranks of the job that are in the trace."""

    dimensions: tuple[Dimension, ...]
    kinds: tuple[str, ...]
    ranks: tuple[int, ...]

    def of_kind(self, kind: str) -> Dimension | None:
        """Return the first dimension of a kind."""
        return next((each for each in self.dimensions if each.kind == kind), None)


@cached_on_trace
def mesh(trace: Trace) -> Mesh:
    """Return the mesh of a job: dimensions from the groups in which ranks communicate; computed once per open trace.

    Groups of the same use, size and distances between ranks that have no rank in common are one dimension. Messages
    within a group of many make a dimension of their own where they connect only some of its ranks: the pipelines of a
    job that sends in the group of all ranks.
    """
    found = communication(trace)
    ranks = tuple(sorted(set(found.calls.rank.tolist())))
    dimensions = [*_dimensions(found, messages=False), *_dimensions(found, messages=True)]
    joined = _joined(dimensions, found.kinds)
    return Mesh(tuple(sorted(joined, key=lambda each: (-len(each.groups), each.groups))), found.kinds, ranks)


def _dimensions(found: Communication, *, messages: bool) -> list[Dimension]:
    """Return the dimensions that collectives make, or messages."""
    calls = found.calls
    is_message = np.isin(calls.kind, [at for at, kind in enumerate(found.kinds) if kind in (SEND, RECEIVE)])
    (at,) = np.nonzero(is_message == messages)
    of_group = defaultdict[tuple[str, tuple[int, ...]], list[Ints]](list)
    for number in np.unique(calls.group[at]).tolist():
        group = found.groups[number]
        own = at[calls.group[at] == number]
        for ranks in _connected(group, calls, own) if messages else [group.ranks]:
            if len(ranks) > 1:
                of_group[meaning(group), ranks].append(own[np.isin(calls.rank[own], ranks)])
    alike = defaultdict[tuple[str, tuple[int, ...], tuple[str, ...]], list[tuple[tuple[int, ...], Ints]]](list)
    for (name, ranks), parts in of_group.items():
        own = np.concatenate(parts)
        used = _uses(calls.chosen(own), found.kinds)
        by_use = _kind_of_messages(ranks, calls.chosen(own)) if messages else _kinds_of_collectives(used)[:1]
        distances = (len(ranks),) if messages else tuple(rank - ranks[0] for rank in ranks)
        alike[name, distances, tuple(by_use)].append((ranks, own))
    return [_dimension(name, members, calls, found.kinds, messages) for (name, *_), members in alike.items()]


def _connected(group: Group, calls: GroupCalls, at: Ints) -> list[tuple[int, ...]]:
    """Return the sets of ranks of a group that messages connect."""
    of = {rank: rank for rank in group.ranks}

    def root(rank: int) -> int:
        while of.setdefault(rank, rank) != rank:
            rank = of[rank]
        return rank

    for rank, peer in np.unique(np.column_stack((calls.rank[at], calls.peer[at])), axis=0).tolist():
        if peer >= 0:
            of[root(rank)] = root(peer)
    sets = defaultdict[int, list[int]](list)
    for rank in of:
        sets[root(rank)].append(rank)
    return [tuple(each) for each in sets.values()]


def _dimension(
    name: str, members: Sequence[tuple[tuple[int, ...], Ints]], calls: GroupCalls, kinds: Sequence[str], messages: bool
) -> Dimension:
    own = calls.chosen(np.sort(np.concatenate([at for _, at in members])))
    groups = tuple(sorted(ranks for ranks, _ in members))
    used = _kind_of_messages(groups[0], own) if messages else _kinds_of_collectives(_uses(own, kinds))
    named = kind_by_name(name)
    kind = named or (used[0] if used else "")
    source = BY_NAME if named else BY_USE if kind else ""
    return Dimension(name, kind, source, tuple(each for each in used if each != kind), groups, own)


def _joined(found: Sequence[Dimension], kinds: Sequence[str]) -> list[Dimension]:
    """Return dimensions with the same groups and no other kind as one: a pipeline, and the loss that it reduces."""
    out = list[Dimension]()
    for each in sorted(found, key=lambda each: each.kind == ""):
        same = next((at for at, other in enumerate(out) if set(other.groups) == set(each.groups)), None)
        if same is None or (each.kind and (each.name != out[same].name or each.source == BY_NAME)):
            out.append(each)
            continue
        other = out[same]
        first, last = (other, each) if other.kind == PIPELINE or not each.kind else (each, other)
        also = dict.fromkeys(kind for kind in (*first.also, last.kind, *last.also) if kind and kind != first.kind)
        calls = GroupCalls.joined([other.calls, each.calls])
        out[same] = replace(first, also=tuple(also), calls=calls)
    return out


def meaning(group: Group) -> str:
    """Return what the program calls a group, without the prefix of a DeviceMesh; "" if that has no meaning."""
    for text in (group.description, group.name):
        if not _NOTHING.fullmatch(text):
            return text.removeprefix("mesh_")
    return ""


def kind_by_name(name: str) -> str:
    """Return what a dimension with this name is for, "" if the name does not have it."""
    return next((kind for kind, words in _NAMES if words.search(name)), "")


_Uses = Mapping[tuple[str, str], tuple[int, int]]  # by kind of collective and phase: calls and bytes


def _uses(calls: GroupCalls, kinds: Sequence[str]) -> _Uses:
    """Return what collectives are used for, without those that move hardly anything."""
    count, moved = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    size = np.maximum(calls.sent_bytes, calls.received_bytes)
    calls, size = calls.chosen((size < 0) | (size > _FEW_BYTES)), size[(size < 0) | (size > _FEW_BYTES)]
    size = np.where(size < 0, _UNKNOWN_BYTES, size)
    keys, which = np.unique(np.column_stack((calls.kind, calls.phase)), axis=0, return_inverse=True)
    numbers, sizes = np.bincount(which.ravel(), minlength=len(keys)), np.bincount(which.ravel(), size, len(keys))
    for (kind, phase), number, bytes_ in zip(keys.tolist(), numbers.tolist(), sizes.tolist(), strict=True):
        count[kinds[kind], PHASES[phase]] += number
        moved[kinds[kind], PHASES[phase]] += int(bytes_)
    least = _LEAST_PART * sum(moved.values())
    return {key: (number, moved[key]) for key, number in count.items() if moved[key] > least}


def _kinds_of_collectives(uses: _Uses) -> list[str]:
    """Return what collectives are for by what they are, and where in the step; most important first.

    Those that exchange parts: of experts. Gathers of parameters before they are needed, with reductions of gradients
    in parts: sharded; where they are reduced in the forward pass, too: tensor. Reductions in the forward and the
    backward pass: tensor. Reductions in and after the backward pass alone: data.
    """

    def of(kind: str, *phases: str) -> int:
        return sum(uses.get((kind, phase), (0, 0))[0] for phase in phases or PHASES)

    found = list[str]()
    if of("alltoall"):
        found.append(EXPERT)
    if of("reducescatter"):
        in_both = of("reducescatter", "forward") and of("allgather", "backward")
        found.append(TENSOR if in_both else SHARDED if of("allgather") else DATA)
    elif of("allreduce", "forward") and of("allreduce", "backward"):
        found.append(TENSOR)
    elif of("allreduce", "backward", "outside") and not of("allreduce", "forward"):
        found.append(DATA)
    return found


def _kind_of_messages(ranks: tuple[int, ...], calls: GroupCalls) -> list[str]:
    """Return whether messages are those of a pipeline: activations go one way, and gradients come back.

    Each rank has two neighbours at most, of two neighbours one only sends when it has received something from the
    other, and both send equally often. In an exchange of halos both send first.
    """
    sent = calls.sent_bytes > 0
    neighbours = Counter[int]()
    peers = np.unique(np.column_stack((calls.rank, calls.peer)), axis=0).tolist()
    for one, other in (pair for pair in peers if pair[0] in ranks and pair[1] in ranks):
        neighbours[one] += 1
        mine, theirs = ((calls.rank == a) & (calls.peer == b) for a, b in ((one, other), (other, one)))
        if not (mine & sent).any() or (mine & sent).sum() != (theirs & sent).sum():
            return []
        if _sends_first(calls, mine, sent) == _sends_first(calls, theirs, sent):
            return []
    return [PIPELINE] if neighbours and max(neighbours.values()) <= 2 else []


def _sends_first(calls: GroupCalls, mine: Bools, sent: Bools) -> bool:
    """Return whether a rank sends to a peer before it has received something from it."""
    received = calls.end_ns[mine & ~sent]
    return not len(received) or bool(calls.asked_ns[mine & sent].min() < received.min())


def in_steps(calls: GroupCalls, begin_ns: Ints, end_ns: Ints, process: Ints) -> Bools:
    """Return which calls were asked for in the windows [begin, end) of their process."""
    out = np.zeros(len(calls), dtype=bool)
    for each in np.unique(process).tolist():
        own = process == each
        order = np.argsort(begin_ns[own])
        begins, ends = begin_ns[own][order], end_ns[own][order]
        at = np.searchsorted(begins, calls.asked_ns, side="right") - 1
        out |= (calls.process == each) & (at >= 0) & (calls.asked_ns < np.append(ends, 0)[at])
    return out
