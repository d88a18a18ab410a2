"""Kernels of Inductor: a span of each call in the code that it generates, and which lines of the program it works for.

Inductor writes a Python file for each graph; its function `call` calls kernels in C++ or Triton, operators with an
output (`extern_kernels.mm`), and ATen operators that it has no kernel for (`torch.ops.aten.sort.default`). What the
file calls by its global names is replaced after it is loaded, so the file and its place in Inductor's cache stay what
they are. Kernels of Triton have spans on the GPU, and keep their objects.

Which nodes of the graph a call works for is known while the file is generated: Inductor hands the nodes of every call
to `set_kernel_post_grad_provenance_tracing`, whether provenance is asked for or not. A file from Inductor's cache is
not generated again: its lines are not known.
"""

from __future__ import annotations

import functools
import os
import re
import sys

from strobe.native import core
from strobe.record.adapter import Replacements
from strobe.record.program.import_hooks import after_import

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType
    from typing import Any

_TORCH, _OPERATOR = 2, 2  # paradigm, role
_COMPILED_KERNEL = 14  # kind of row, strobe.h
_DEFINED = re.compile(r"^(\w+) = async_compile\.(\w+)\(")
_CALL = re.compile(r"^\s+(?:[\w, ]+ = )?((?:extern_kernels\.|torch\.ops\.)?\w[\w.]*)\(")
_PLACE = re.compile(r'^ *File "(.*)", line (\d+), in ', re.M)
_FROM_CACHE = "its code comes from Inductor's cache, which has no lines (TORCHINDUCTOR_FORCE_DISABLE_CACHES=1)"
_NO_STACK = "the nodes of its graph have no stack trace"
_FORMER = "this PyTorch does not hand out which nodes a kernel is made of"
# Modules that hold the function under its name.
_HOLDERS = ("codegen.cpp", "codegen.triton", "ir", "scheduler")


class Seen:
    """Stands for an object of which a few members are replaced; all others are the object's own."""

    def __init__(self, original: Any, **members: Any) -> None:
        self.__dict__.update(members)
        self.__dict__["_original"] = original

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._original, name)
        if name.isidentifier() and not name.startswith("__"):
            self.__dict__[name] = value
        return value


class GeneratedCode:
    """Records the calls of kernels in generated code between `start` and `stop`."""

    def __init__(self) -> None:
        self._on = False
        self._replacements = Replacements()
        # Of the code that is being generated: by name, the nodes of each of its calls, in their order.
        self._nodes: dict[str, list[list[Any]]] = {}
        self._hands_out_nodes = False
        self._seen: set[str] = set()  # files whose rows are recorded

    def start(self) -> None:
        """Wait for Inductor; code that it has loaded before is recorded from now on."""
        self._on = True
        after_import("torch._inductor.debug", self._debug_imported)
        after_import("torch._inductor.codecache", self._code_cache_imported)

    def stop(self) -> None:
        """Give Inductor's code and its functions back."""
        self._on = False
        self._replacements.undo()

    def _debug_imported(self, debug: ModuleType) -> None:
        name = "set_kernel_post_grad_provenance_tracing"
        original: Any = getattr(debug, name, None)
        if not self._on or original is None:
            return
        self._hands_out_nodes = True

        @functools.wraps(original)
        def noting(node_schedule: Any, kernel_name: str, is_extern: bool = False, **kwargs: Any) -> Any:
            if self._on:
                try:
                    self._nodes.setdefault(kernel_name, []).append(_origins(node_schedule, is_extern))
                except Exception:  # of another version than we know; never into the program
                    core.count("compilations_unreadable", 1)
            return original(node_schedule, kernel_name, is_extern, **kwargs)

        for holder in (debug, *(sys.modules.get(f"torch._inductor.{each}") for each in _HOLDERS)):
            if getattr(holder, name, None) is original:
                self._replacements.put(holder, name, noting)

    def _code_cache_imported(self, codecache: ModuleType) -> None:
        cache: Any = getattr(codecache, "PyCodeCache", None)
        if not self._on or not hasattr(cache, "load_by_key_path"):
            return
        original = cache.load_by_key_path

        @functools.wraps(original)
        def load_by_key_path(*args: Any, **kwargs: Any) -> Any:
            module = original(*args, **kwargs)
            self._loaded(module)
            return module

        self._replacements.put(cache, "load_by_key_path", load_by_key_path)
        for module in list(getattr(cache, "modules", ())):
            self._loaded(module)

    def _loaded(self, module: Any) -> None:
        """Replace what generated code calls, and record what is known of its calls."""
        try:
            with open(module.__file__, encoding="utf-8") as file:
                lines = file.read().splitlines()
            calls = generated_calls(lines)
            if not self._on or not calls:
                return
            nodes, self._nodes = self._nodes, {}
            if module.__file__ not in self._seen:
                self._seen.add(module.__file__)
                for name, at in calls.items():
                    of_calls = nodes.get(name, [])[-len(at) :]
                    for line, own in zip(at, of_calls if len(of_calls) == len(at) else [None] * len(at), strict=True):
                        self._row(module.__file__, name, line, own)
            self._replace(module, calls)
        except Exception:  # of another version than we know; never into the program
            core.count("compilations_unreadable", 1)

    def _replace(self, module: Any, calls: dict[str, list[int]]) -> None:
        roots: dict[str, Any] = {}
        for name, lines in calls.items():
            root, *members = name.split(".")
            original = getattr(module, root, None)
            if original is None or members[-1:] == ["run"]:
                continue
            regions = {line: core.region(name, _TORCH, _OPERATOR, module.__file__, line) for line in lines}
            if not members:
                roots[root] = recorded(original, regions)
                continue
            at = roots[root] = roots.get(root) or Seen(original)
            for member in members[:-1]:
                inner = getattr(at, member)
                if not isinstance(inner, Seen):
                    inner = at.__dict__[member] = Seen(inner)
                at = inner
            at.__dict__[members[-1]] = recorded(getattr(at, members[-1]), regions)
        for root, new in roots.items():
            self._replacements.put(module, root, new)

    def _row(self, file: str, name: str, line: int, nodes: list[Any] | None) -> None:
        places = list(dict.fromkeys(filter(None, (_place(node) for node in nodes or ()))))
        operators = dict.fromkeys(filter(None, (_operator(node) for node in nodes or ())))
        shapes = dict.fromkeys(filter(None, (_shape(node) for node in nodes or ())))
        missing = _FROM_CACHE if self._hands_out_nodes else _FORMER
        reason = "" if places else _NO_STACK if nodes is not None else missing
        kernel = name.removesuffix(".run")
        first = core.text(kernel) | core.text(file) << 21 | core.text("\n".join(operators)) << 42
        second = core.text("\n".join(places)) | core.text("\n".join(shapes)) << 21 | core.text(reason) << 42
        core.row(_COMPILED_KERNEL, first, second, line, core.NOTHING, core.NOTHING, core.NOTHING)


def generated_calls(lines: Iterable[str]) -> dict[str, list[int]]:
    """Return the lines, from 1 on, in which generated code calls each kernel or operator."""
    defined: set[str] = set()
    calls: dict[str, list[int]] = {}
    in_text = False
    for number, line in enumerate(lines, 1):
        if in_text:  # the code of a kernel, in C++ or Triton
            in_text = "'''" not in line
        elif found := _DEFINED.match(line):
            defined.add(found[1])
            in_text = line.count("'''") == 1
        elif found := _CALL.match(line):
            name = found[1]
            if name.removesuffix(".run") in defined or name.startswith(("extern_kernels.", "torch.ops.")):
                calls.setdefault(name, []).append(number)
    return calls


def recorded(call: Callable[..., Any], regions: dict[int, int]) -> Callable[..., Any]:
    """Return the function with a span of each call in one of these lines of its caller."""
    enter, leave, caller = core.enter, core.leave, sys._getframe

    def kernel(*args: Any, **kwargs: Any) -> Any:
        region = regions.get(caller(1).f_lineno)
        if region is None:
            return call(*args, **kwargs)
        enter(region)
        try:
            return call(*args, **kwargs)
        finally:
            leave(region)

    return kernel


def _origins(node_schedule: Any, is_extern: bool) -> list[Any]:
    """Return the nodes of the graph that a call works for."""
    if is_extern:
        return [node_schedule.origin_node] if node_schedule.origin_node else list(node_schedule.origins)
    parts = (each.node for each in node_schedule if getattr(each, "node", None) is not None)
    return list(dict.fromkeys(origin for part in parts for origin in part.origins))


def _place(node: Any) -> str:
    """Return FILE:LINE of the innermost frame that is not PyTorch's own, else of the innermost one; "" for none."""
    frames: list[tuple[str, str]] = _PLACE.findall(node.meta.get("stack_trace") or "")
    own = [frame for frame in frames if f"{os.sep}torch{os.sep}" not in frame[0]]
    file, line = (own or frames or [("", "")])[-1]
    return f"{file}:{line}" if file else ""


def _operator(node: Any) -> str:
    operator = node.meta.get("original_aten") or node.target
    return str(getattr(operator, "_overloadpacket", operator)) if node.op == "call_function" else ""


def _shape(node: Any) -> str:
    value = node.meta.get("val")
    shape = getattr(value, "shape", None)
    return "" if shape is None else f"{getattr(value, 'dtype', '')} {list(shape)}".removeprefix("torch.")
