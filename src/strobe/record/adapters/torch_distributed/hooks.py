"""Collectives of torch.distributed: what each of them moves, in which group, as its how many-eth; DDP's buckets.

Everything that runs a collective comes through one place, PyTorch's dispatcher (`c10d::allreduce_`): functions of
torch.distributed, functional collectives, FSDP, and DDP, whose reducer is C++. There a kernel of ours looks at the
arguments and calls PyTorch's own, with the same arguments and the same result. When and how long a collective of gloo
runs is known from its range `gloo:all_reduce`, on the thread that runs it; native/adapters/torch_collectives.cpp brings
the two together. Nothing waits for a collective here.
"""

from __future__ import annotations

import os
import sys
import weakref

from strobe.native import core
from strobe.record.adapter import Hooks
from strobe.record.adapters.torch_distributed.messages import Messages
from strobe.record.options.session_settings import Session
from strobe.record.program import session
from strobe.record.program.import_hooks import after_import

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


class _TorchDistributed(Hooks):
    def __init__(self) -> None:
        self._library: Any = None  # of torch.library: our kernels live as long as it does
        self._groups: dict[int, Group] = {}  # by identity, which another one may have later
        self._types: dict[Any, int] = {}  # of elements: their text in this recording
        self._on = False
        self._torch: Any = None
        self._c10d: Any = None
        self._workers = False  # whether facts reach the threads of gloo
        self._waiting: tuple[Any, Any, Any] | None = None  # for the first group
        self._rank_noted = False
        self._messages = Messages()

    def start(self, settings: Session) -> None:
        """Put our kernels in as soon as torch.distributed is imported."""
        self._on = True
        after_import("torch.distributed.distributed_c10d", self._c10d_imported)

    def stop(self) -> None:
        self._on = False
        self._wait_no_more()
        core.collectives_stop()
        library, self._library = self._library, None
        if library is not None:
            library._destroy()
        self._messages.stop()
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
            core.count("not_recorded_torch_distributed", 1)
            session.tell(f"torch.distributed is not recorded: {error}")

    def _put_in(self, c10d: Any) -> None:
        import torch  # type: ignore[import-not-found, unused-ignore]  # part of what is being imported

        missing = core.collectives_start(os.path.join(os.path.dirname(torch.__file__), "lib", "libc10.so"))
        if missing:
            core.count(f"collectives_without_times: no {missing}", 1)
        self._torch, self._c10d = torch, c10d
        self._workers = not missing
        self._never_compiled(self._messages.start(torch._C._distributed_c10d.Work))
        self._library = torch.library.Library("c10d", "IMPL")
        for name, about in _OPERATORS.items():
            packet = getattr(torch.ops.c10d, name, None)
            if packet is not None:
                self._library.impl(name, self._kernel(packet.default, name, *about), "BackendSelect", with_keyset=True)

    def _kernel(self, operator: Any, name: str, collective: str, sends: str, receives: str) -> Callable[..., Any]:
        """Return what runs instead of an operator: it notes the arguments, and runs the operator.

        What follows from the operator's name and types is decided here, once: each look at a tensor calls into PyTorch.
        """
        arguments = operator._schema.arguments
        places = {argument.name: place for place, argument in enumerate(arguments)}
        group_at = places["process_group"]
        root_at = places.get("root_rank", places.get("dst", places.get("src")))
        tag_at = places.get("tag")  # messages alone have one
        sends_at: Any = places.get(sends)
        receives_at: Any = places.get(receives)
        in_place = sends_at == receives_at
        look_at_sent, look_at_received = (
            None if at is None else _LOOKS[str(arguments[at].type)] for at in (sends_at, receives_at)
        )
        # The range of PyTorch's own observer is of this region.
        region = core.region(f"c10d::{name}", TORCH, COLLECTIVE, module="PyTorch")
        word = core.text(collective)
        own_key = self._torch._C.DispatchKey.BackendSelect
        run = operator._handle.redispatch_boxed
        unbox = self._c10d.ProcessGroup.unbox
        may_be_bucket = name == "allreduce_"
        backward = getattr(self._torch._C, "_current_graph_task_id", lambda: -1)
        numbered = collective not in _NOT_COLLECTIVE
        one_to_all, all_to_one = collective == "broadcast", collective == "reduce"
        begin, end = core.collective_begin, core.collective_end
        group_of, type_text, messages = self._group, self._type_text, self._messages
        direction = core.text("send" if collective == "send" else "receive")

        def kernel(keys: Any, *args: Any) -> Any:
            below = keys.remove(own_key)
            message = None
            try:
                own = unbox(args[group_at])
                group = group_of(own)
                first = None
                sent = received = 0
                dtype = None
                if look_at_received is not None:
                    first, dtype, received = look_at_received(args[receives_at])
                if in_place:
                    sent = received
                elif look_at_sent is not None:
                    of_sent, type_sent, sent = look_at_sent(args[sends_at])
                    if of_sent is not None:
                        first, dtype = of_sent, type_sent
                root = args[root_at] if root_at is not None else NONE
                # The same tensor goes in at one rank and comes out at others.
                if one_to_all:
                    sent, received = (sent, 0) if root == group.rank else (0, received)
                elif all_to_one and root != group.rank:
                    received = 0
                before = counted(own)
                bucket = NONE
                if may_be_bucket:
                    pass_ = backward()
                    if pass_ >= 0:
                        bucket = group.bucket(first, pass_, sys._getframe().f_back)
                first = args[0] if first is None else first  # a barrier has a tensor, too
                later = first.is_cpu and numbered and group.has_workers and self._workers
                if collective:
                    begin(
                        word, type_text(dtype), group.text, group.ranks_text, group.about,
                        before + 1 - group.left_out if numbered and before >= 0 else NONE,
                        root, bucket, sent, received, region,
                        group.ranks[root] if not numbered and 0 <= root < len(group.ranks) else NONE, later,
                    )  # fmt: skip
                if tag_at is not None and first.is_cpu and group.has_workers:
                    message = messages.asked(group, direction, root, args[tag_at], sent + received)
            except Exception as error:  # never into the program
                core.count(f"collectives_not_read: {type(error).__name__}", 1)
                return run(below, *args)
            try:
                work = run(below, *args)
            finally:
                if collective:
                    end()
                if not numbered:
                    group.leave_out(own, before)
            if message is not None or later:
                messages.pending(work, message)
            return work

        self._never_compiled(kernel)
        return kernel

    def _never_compiled(self, kernel: Any) -> None:
        """Let torch.compile leave a function of ours alone, and all that it calls: it would compile even this one."""
        dynamo: Any = getattr(self._torch._C._dynamo, "eval_frame", None)
        if hasattr(dynamo, "set_code_exec_strategy"):
            skip = dynamo._FrameAction.SKIP
            dynamo.set_code_exec_strategy(kernel.__code__, dynamo._FrameExecStrategy(skip, skip))
        elif hasattr(dynamo, "skip_code"):
            dynamo.skip_code(kernel.__code__)

    def _type_text(self, type_: Any) -> int:
        if type_ is None:
            return 0
        known = self._types.get(type_)
        if known is None:
            name = str(type_).rpartition(".")[2]
            known = self._types[type_] = core.text(_TYPES.get(name, name.capitalize()))
        return known

    def _group(self, own: Any) -> Group:
        known = self._groups.get(id(own))
        if known is None or known.own() is not own:
            known = self._groups[id(own)] = Group(own, self._c10d)
            if not self._rank_noted:
                self._rank_noted = True
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
        # What the program, or a DeviceMesh (`mesh_tp`), made it for. PyTorch before 2.4 has none.
        description = core.text(str(getattr(own, "group_desc", "")))
        self.about = core.text(f"{self.size},{description}")
        self.backward, self.next_bucket = -1, 0
        self.left_out = 0  # what PyTorch counts with the collectives, but is not one
        try:
            self.has_workers = "gloo" in str(c10d.get_backend_config(own) if self.ranks else own.name()).lower()
        except Exception:
            self.has_workers = False

    def bucket(self, tensor: Any, backward: int, caller: FrameType | None) -> int:
        """Return which bucket of gradients an all-reduce in backward pass number `backward` is, or NONE.

        DDP's reducer asks for them from C++, one for each bucket, in the order of the buckets. A hook in Python has a
        caller of its own; which parameters were used (find_unused_parameters) are integers. Without a caller it is a
        thread of autograd's.
        """
        if tensor is None or not (tensor.is_floating_point() or tensor.is_complex()):
            return NONE
        if caller is not None and not caller.f_code.co_filename.endswith(_BACKWARD):
            return NONE
        self.next_bucket = self.next_bucket + 1 if self.backward == backward else 0
        self.backward = backward
        return self.next_bucket

    def leave_out(self, own: Any, before: int) -> None:
        """Do not number what was counted since then: it was not a collective of all ranks."""
        if before >= 0:
            self.left_out += counted(own) - before


def counted(own: Any) -> int:
    """How many collectives PyTorch has counted in a group: the same on all ranks, but for `left_out`; or -1."""
    try:
        return int(own._get_sequence_number_for_group())
    except RuntimeError:  # a backend that does not count
        return -1


def _look_at_one(tensor: Any) -> tuple[Any, Any, int]:
    """Return a tensor, its element type, and its bytes."""
    try:
        return tensor, tensor.dtype, tensor.nbytes
    except RuntimeError:  # sparse
        values = tensor._values() if tensor.is_sparse else tensor
        return tensor, tensor.dtype, values.numel() * values.element_size()


def _look_at_list(tensors: Any) -> tuple[Any, Any, int]:
    """Return the first tensor of a list or None, the element type of all or None, and the bytes of all."""
    if len(tensors) == 1:
        return _look_at_one(tensors[0])
    if not tensors:
        return None, None, 0
    first, type_, total = _look_at_one(tensors[0])
    for tensor in tensors[1:]:
        _, other, size = _look_at_one(tensor)
        total += size
        if other is not type_:
            type_ = None
    return first, type_, total


def _look_at_lists(lists: Any) -> tuple[Any, Any, int]:
    """Return the same of a list of lists."""
    if len(lists) == 1:
        return _look_at_list(lists[0])
    return _look_at_list([tensor for tensors in lists for tensor in tensors])


# By the type that the operator's schema gives an argument.
_LOOKS = {"Tensor": _look_at_one, "List[Tensor]": _look_at_list, "List[List[Tensor]]": _look_at_lists}


HOOKS = _TorchDistributed()
