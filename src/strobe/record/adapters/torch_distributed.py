"""Collectives of torch.distributed: what each of them moves, in which group, as its how many-eth; DDP's buckets.

Everything that runs a collective comes through one place, PyTorch's dispatcher (`c10d::allreduce_`): functions of
torch.distributed, functional collectives, FSDP, and DDP, whose reducer is C++. There a kernel of ours looks at the
arguments and hands on to PyTorch's own, with the same arguments and the same result. When a collective of gloo runs,
and for how long, its range `gloo:all_reduce` says, on the thread that runs it; native/adapters/torch_collectives.cpp
brings the two together. Nothing waits for a collective here.
"""

from __future__ import annotations

import os
import sys
import weakref

from strobe.native import core
from strobe.record.config import Session
from strobe.record.imports import after_import

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, ModuleType
    from typing import Any

TORCH, COLLECTIVE = 2, 10  # model/kinds.py: paradigm, role
NONE = core.NOTHING_32

# Operators of the dispatcher: name of the collective, argument that goes in, argument that comes out.
_OPERATORS = {
    "allreduce_": ("all_reduce", "tensors", "tensors"),
    "allreduce_coalesced_": ("all_reduce", "tensors", "tensors"),
    "broadcast_": ("broadcast", "tensors", "tensors"),
    "reduce_": ("reduce", "tensors", "tensors"),
    "allgather_": ("all_gather", "input_tensors", "output_tensors"),
    "_allgather_base_": ("all_gather", "input_tensor", "output_tensor"),
    "allgather_coalesced_": ("all_gather", "input_list", "output_lists"),
    "allgather_into_tensor_coalesced_": ("all_gather", "inputs", "outputs"),
    "reduce_scatter_": ("reduce_scatter", "input_tensors", "output_tensors"),
    "_reduce_scatter_base_": ("reduce_scatter", "input_tensor", "output_tensor"),
    "reduce_scatter_tensor_coalesced_": ("reduce_scatter", "inputs", "outputs"),
    "gather_": ("gather", "input_tensors", "output_tensors"),
    "scatter_": ("scatter", "input_tensors", "output_tensors"),
    "alltoall_": ("all_to_all", "input_tensors", "output_tensors"),
    "alltoall_base_": ("all_to_all", "input", "output"),
    "barrier": ("barrier", "", ""),
    "send": ("send", "tensors", ""),
    "recv_": ("recv", "", "tensors"),
    "recv_any_source_": ("recv", "", "tensors"),
    # A barrier that sends messages by itself, as many as its rank has to: they must not count.
    "monitored_barrier_": ("", "", ""),
}
# Some count with the collectives of their group (gloo), some do not (NCCL); they are not the same on all ranks.
_NOT_COLLECTIVE = ("send", "recv", "")
# The Python that runs a backward pass.
_BACKWARD = ("torch/autograd/graph.py", "torch/autograd/__init__.py")
# Names of element types as PyTorch's own profiler writes them.
_TYPES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long",
    "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool", "complex32": "ComplexHalf",
    "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip


class TorchDistributed:
    """The adapter."""

    name = "torch_distributed"

    def __init__(self) -> None:
        self._library: Any = None  # of torch.library: our kernels live as long as it does
        self._groups: dict[str, Group] = {}
        self._types: dict[Any, int] = {}  # of elements: their text in this recording
        self._on = False
        self._torch: Any = None
        self._c10d: Any = None
        self._workers = False  # whether facts reach the threads of gloo
        self._waiting: tuple[Any, Any, Any] | None = None  # for the first group
        self._rank_told = False

    def available(self) -> str:
        """Always: without torch.distributed nothing happens."""
        return ""

    def start(self, settings: Session) -> None:
        """Put our kernels in as soon as torch.distributed is there."""
        self._on = True
        after_import("torch.distributed.distributed_c10d", self._c10d_imported)

    def stop(self) -> None:
        """Take our kernels away again."""
        self._on = False
        self._wait_no_more()
        core.collectives_stop()
        library, self._library = self._library, None
        if library is not None:
            library._destroy()
        self._groups.clear()
        self._types.clear()

    def _c10d_imported(self, c10d: ModuleType) -> None:
        if not self._on or not hasattr(c10d, "_new_process_group_helper"):
            return
        if c10d.is_initialized():
            self._begin(c10d)
            return
        # `import torch` imports all this: nothing is put in before the program makes its first group.
        original = c10d._new_process_group_helper

        def first_group(*args: Any, **kwargs: Any) -> Any:
            self._wait_no_more()
            if self._on:
                self._begin(c10d)
            return original(*args, **kwargs)

        c10d._new_process_group_helper = first_group  # type: ignore[attr-defined]
        self._waiting = (c10d, first_group, original)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            c10d, ours, original = self._waiting
            self._waiting = None
            if c10d._new_process_group_helper is ours:
                c10d._new_process_group_helper = original

    def _begin(self, c10d: Any) -> None:
        try:
            self._put_in(c10d)
        except Exception as error:  # never into the program
            core.count(f"not_recorded_{self.name}", 1)
            print(f"strobe: torch.distributed is not recorded: {error}", file=sys.stderr)

    def _put_in(self, c10d: Any) -> None:
        import torch  # type: ignore[import-not-found, unused-ignore]  # part of what is being imported

        missing = core.collectives_start(os.path.join(os.path.dirname(torch.__file__), "lib", "libc10.so"))
        if missing:
            core.count(f"collectives_without_times: no {missing}", 1)
        self._torch, self._c10d = torch, c10d
        self._workers = not missing
        self._library = torch.library.Library("c10d", "IMPL")
        for name, about in _OPERATORS.items():
            packet = getattr(torch.ops.c10d, name, None)
            if packet is not None:
                self._library.impl(name, self._kernel(packet.default, name, *about), "BackendSelect", with_keyset=True)

    def _kernel(self, operator: Any, name: str, collective: str, sends: str, receives: str) -> Callable[..., Any]:
        """Return what runs instead of an operator: it notes the arguments, and runs the operator."""
        places = {argument.name: place for place, argument in enumerate(operator._schema.arguments)}
        group_at, root_at = places["process_group"], places.get("root_rank")
        peer_at = places.get("dst", places.get("src"))
        sends_at, receives_at = places.get(sends), places.get(receives)
        region = core.region(f"c10d::{name}", TORCH, COLLECTIVE)
        word = core.text(collective)
        own_key = self._torch._C.DispatchKey.BackendSelect
        itt = self._torch.autograd.profiler.ProfilerState.ITT.value
        observed = self._torch._C._autograd._profiler_type
        unbox = self._c10d.ProcessGroup.unbox
        may_be_bucket = name == "allreduce_"
        backward = getattr(self._torch._C, "_current_graph_task_id", lambda: -1)

        def kernel(keys: Any, *args: Any) -> Any:
            run = operator.redispatch
            below = keys.remove(own_key)
            try:
                own = unbox(args[group_at])
                group = self._group(own)
                inputs = _tensors(args[sends_at]) if sends_at is not None else []
                same = receives_at == sends_at
                outputs = inputs if same else _tensors(args[receives_at]) if receives_at is not None else []
                root = args[root_at] if root_at is not None else args[peer_at] if peer_at is not None else NONE
                sent = _bytes(inputs)
                received = sent if same else _bytes(outputs)
                # The same tensor goes in at one rank and comes out at others.
                if collective == "broadcast":
                    sent, received = (sent, 0) if root == group.rank else (0, received)
                elif collective == "reduce" and root != group.rank:
                    received = 0
                numbered = collective not in _NOT_COLLECTIVE
                before = counted(own)
                bucket = group.bucket(inputs, backward(), _caller()) if may_be_bucket else NONE
                dtype = self._type_text(inputs or outputs)
                on_host = (inputs or outputs or args)[0].device.type == "cpu"
                # Gloo's threads have ranges if PyTorch's observer is on in the thread that asks.
                is_observed = observed().value == itt
            except Exception as error:  # never into the program
                core.count(f"collectives_not_read: {type(error).__name__}", 1)
                return run(below, *args)
            if not collective:
                try:
                    return run(below, *args)
                finally:
                    group.leave_out(own, before)
            later = self._workers and is_observed and group.has_workers and on_host and numbered
            if not is_observed:
                core.enter(region)
            core.collective_begin(
                word, dtype, group.text, group.ranks_text, group.size,
                before + 1 - group.left_out if numbered and before >= 0 else NONE,
                root, bucket, sent, received, region,
                group.ranks[root] if not numbered and 0 <= root < len(group.ranks) else NONE, later,
            )  # fmt: skip
            try:
                return run(below, *args)
            finally:
                core.collective_end()
                if not is_observed:
                    core.leave(region)
                if not numbered:
                    group.leave_out(own, before)

        return kernel

    def _type_text(self, tensors: list[Any]) -> int:
        types = {tensor.dtype for tensor in tensors}
        if len(types) != 1:
            return 0
        type_ = types.pop()
        known = self._types.get(type_)
        if known is None:
            name = str(type_).rpartition(".")[2]
            known = self._types[type_] = core.text(_TYPES.get(name, name.capitalize()))
        return known

    def _group(self, own: Any) -> Group:
        name = str(own.group_name)
        known = self._groups.get(name)
        if known is None or known.own() is not own:
            known = self._groups[name] = Group(own, self._c10d)
            if not self._rank_told:
                self._rank_told = True
                core.note_rank(self._c10d.get_rank(), self._c10d.get_world_size())
        return known


class Group:
    """A process group, and how many collectives it has had."""

    def __init__(self, own: Any, c10d: Any) -> None:
        self.own = weakref.ref(own)  # it ends when the program lets go of it
        self.rank, self.size = own.rank(), own.size()
        try:
            self.ranks = c10d.get_process_group_ranks(own)
        except Exception:  # a group that torch.distributed did not make
            self.ranks = []
        self.text = core.text(str(own.group_name))
        self.ranks_text = core.text(str(list(self.ranks)) if self.ranks else "")
        self.backward, self.next_bucket = -1, 0
        self.left_out = 0  # what PyTorch counts with the collectives and is none
        try:
            self.has_workers = "gloo" in str(c10d.get_backend_config(own) if self.ranks else own.name()).lower()
        except Exception:
            self.has_workers = False

    def bucket(self, tensors: list[Any], backward: int, caller: FrameType | None) -> int:
        """Return which bucket of gradients an all-reduce in backward pass number `backward` is, or NONE.

        DDP's reducer asks for them from C++, one for each bucket, in the order of the buckets. A hook in Python has a
        caller of its own; which parameters were used (find_unused_parameters) are integers.
        """
        if backward < 0 or not tensors or not (tensors[0].is_floating_point() or tensors[0].is_complex()):
            return NONE
        if caller is not None and not caller.f_code.co_filename.endswith(_BACKWARD):
            return NONE
        self.next_bucket = self.next_bucket + 1 if self.backward == backward else 0
        self.backward = backward
        return self.next_bucket

    def leave_out(self, own: Any, before: int) -> None:
        """What was counted since then is no collective of all ranks."""
        if before >= 0:
            self.left_out += counted(own) - before


def counted(own: Any) -> int:
    """How many collectives PyTorch has counted in a group: the same on all ranks, but for `left_out`; or -1."""
    try:
        return int(own._get_sequence_number_for_group())
    except RuntimeError:  # a backend that does not count
        return -1


def _tensors(value: Any) -> list[Any]:
    """The tensors of an argument: one, a list of them, or a list of lists."""
    if not isinstance(value, (list, tuple)):
        return [value]
    if value and isinstance(value[0], (list, tuple)):
        return [tensor for each in value for tensor in each]
    return list(value)


def _bytes(tensors: list[Any]) -> int:
    total = 0
    for tensor in tensors:
        if tensor.is_sparse:
            tensor = tensor._values()
        total += tensor.numel() * tensor.element_size()
    return total


def _caller() -> FrameType | None:
    """Return who called the kernel: the frame that went into C++, None on a thread of autograd's."""
    return sys._getframe(1).f_back


ADAPTER = TorchDistributed()
