"""Execution traces: PyTorch's (ExecutionTraceObserver, JSON) and Chakra's, which are made of them (protobuf, `.et`).

A node is one execution of an operator or kernel. Nodes are counted by call path, which their control dependencies give
where PyTorch recorded them, by thread, or by stream. Their durations, if the file has some, exclude what they call.
Not kept: data dependencies, inputs and outputs, and when nodes began.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from strobe.formats.reading.profile_import import ROOT, CallTree, Function, ProfileProcess, Weight, clean, read_whole
from strobe.formats.reading.protobuf import VARINT, Field, fields, integers, signed, sound_fields, varint_at
from strobe.model.plugins import Format, Imported, ImportSource, ImportTarget

_CALLS, _BYTES, _TIME = Weight("calls", "count"), Weight("communicated", "bytes"), Weight("time", "us")
# GlobalMetadata as the first message: its size, and its version as the first field.
_CHAKRA = re.compile(rb"(?:[\x03-\x7f]|[\x80-\xff][\x01-\x7f])\x0a.\d+\.\d+\.\d+", re.DOTALL)
_JSON = re.compile(rb'\s*\{\s*"schema"\s*:\s*"\d+\.\d+\.\d+[^"]{0,40}"')
# Containers of PyTorch's, not operators.
_CONTAINER = re.compile(r"\[pytorch\|profiler\|execution_(?:graph|trace)\|(?:process|thread)\]")
_USER_SCOPE = 7  # at::RecordScope::USER_SCOPE
_COMMUNICATION = {5: "p2p", 6: "p2p", 7: "collective"}  # NodeType of et_def.proto
_LARGEST = 1 << 62
_WHOLE_VALUES = (7, 9, 11, 13, 27)  # of AttributeProto: int32, int64, uint32, uint64, bool


def sniff(head: bytes) -> bool:
    """Return whether it is JSON with a schema and nodes, or begins with the metadata of Chakra."""
    return _CHAKRA.match(head) is not None or (_JSON.match(head) is not None and b'"nodes"' in head)


class _Node(NamedTuple):
    """A node of either form. `parent` is None where nothing is known to call it; `stream` is None on the host."""

    number: int
    name: str
    parent: int | None
    thread: int
    stream: int | None
    role: str
    time_us: Fraction
    bytes: int


def read(source: ImportSource, target: ImportTarget) -> Imported:
    """Import a file. Raises ValueError if it has no node, or is above 512 MiB."""
    data = read_whole(source)
    process = ProfileProcess(source, target)
    properties: dict[str, object] = {}
    nodes = _of_json(data, process, properties) if _JSON.match(data) else _of_chakra(data, process, properties)
    found: dict[int, _Node] = {}
    for node in nodes:
        process.core.count("duplicate_definition_ids", node.number in found)
        found[node.number] = node
    if not found:
        raise ValueError("it has no node")
    _write(process, found)
    pid = properties.get("pid")
    return process.finish(properties, pid=pid if isinstance(pid, int) else 0)


def _write(process: ProfileProcess, nodes: Mapping[int, _Node]) -> None:
    weights = [_CALLS]
    weights += [_BYTES] if any(node.bytes for node in nodes.values()) else []
    weights += [_TIME] if any(node.time_us for node in nodes.values()) else []
    trees: dict[tuple[str, int], CallTree] = {}
    paths: dict[int, int] = {}
    for node in nodes.values():
        path = _path(process, nodes, node, paths)
        if _CONTAINER.fullmatch(node.name):
            continue
        place = ("thread", node.thread) if node.stream is None else ("stream", node.stream)
        if place not in trees:
            trees[place] = CallTree(process, process.location(" ".join(map(str, place)), place[1]), weights, calls=True)
        values: dict[Weight, int | Fraction] = {_CALLS: 1, _BYTES: node.bytes, _TIME: node.time_us}
        trees[place].add(path, [values[weight] for weight in weights])
    for tree in trees.values():
        tree.save()


def _path(process: ProfileProcess, nodes: Mapping[int, _Node], node: _Node, paths: dict[int, int]) -> int:
    """Return the call path of a node; files have callers behind what they call, so callers are looked up first."""
    above: list[_Node] = []
    going: set[int] = set()
    each: _Node | None = node
    while each is not None and each.number not in paths:
        if each.number in going:
            process.core.count("callers_not_understood")  # they lead back to the node
            break
        going.add(each.number)
        above.append(each)
        each = None if each.parent is None else nodes.get(each.parent)
    path = paths.get(each.number, ROOT) if each is not None else ROOT
    for each in reversed(above):
        if not _CONTAINER.fullmatch(each.name):
            paradigm = "other" if each.stream is not None or each.role in ("collective", "p2p") else "torch"
            path = process.path(path, process.region(Function(each.name), paradigm=paradigm, role=each.role))
        paths[each.number] = path
    return paths.get(node.number, ROOT)


def _of_json(data: bytes, process: ProfileProcess, properties: dict[str, object]) -> Iterator[_Node]:
    try:
        body = json.loads(data.decode("utf-8", "replace"), parse_float=_decimal, parse_constant=lambda _: None)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    nodes = body.get("nodes") if isinstance(body, dict) else None
    if not isinstance(nodes, list):
        raise ValueError("it has no nodes")
    properties.update({key: body[key] for key in ("schema", "pid", "time") if isinstance(body.get(key), (str, int))})
    for each in nodes:
        number = _integer(each.get("id")) if isinstance(each, dict) else None
        if number is None:
            process.core.count("frames_not_understood")
            continue
        attributes = {key: each.get(key) for key in ("tid", "scope", "rf_id", "stream")}
        given = each.get("attrs")
        for one in given if isinstance(given, list) else ():
            if isinstance(one, dict) and isinstance(one.get("name"), str):
                attributes[one["name"]] = one.get("value")
        parent = each.get("ctrl_deps", each.get("parent"))
        kernel = each.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
        yield _node(
            number,
            str(each.get("name")),
            _integer(parent[0] if isinstance(parent, list) and len(parent) == 1 else parent),
            {name: _integer(value) for name, value in attributes.items()},
            _exact(each.get("exclusive_dur")),
            on_gpu=kernel,
        )


def _of_chakra(data: bytes, process: ProfileProcess, properties: dict[str, object]) -> Iterator[_Node]:
    for at, message in enumerate(_messages(data, process)):
        if at == 0:
            for field in sound_fields(message):
                if field.number == 1:
                    properties["schema"] = field.body.decode("utf-8", "replace")
                elif field.number == 2:
                    name, value = _attribute(field.body)
                    if name in ("schema", "pid", "time") and value is not None:
                        properties[name] = value
            continue
        try:
            yield _chakra_node(list(fields(message)))
        except ValueError:
            process.core.count("damaged_records")


def _messages(data: bytes, process: ProfileProcess) -> Iterator[bytes]:
    """Return the messages of a file, each of which has its size before it."""
    at = 0
    while at < len(data):
        try:
            size, at = varint_at(data, at)
        except ValueError:
            size = len(data)
        if size > len(data) - at:
            process.core.count("truncated")
            return
        yield data[at : at + size]
        at += size


def _chakra_node(found: list[Field]) -> _Node:
    whole = {field.number: field.integer for field in found if field.kind == VARINT}
    parents = [number for field in found if field.number == 4 for number in integers(field)]
    attributes: dict[str, int | None] = {}
    for field in found:
        if field.number == 10:
            name, value = _attribute(field.body)
            attributes[name] = value if isinstance(value, int) else None
    name = next((field.body for field in found if field.number == 2), b"").decode("utf-8", "replace")
    # Without PyTorch's attributes, control dependencies are an order, and no calls.
    caller = parents[0] if len(parents) == 1 and "rf_id" in attributes else None
    node = _node(
        signed(whole.get(1, 0)),
        name,
        caller,
        attributes,
        Fraction(min(whole.get(7, 0), _LARGEST)),
        on_gpu=attributes.get("is_cpu_op") == 0,
    )
    role = _COMMUNICATION.get(whole.get(3, 0))
    return node if role is None else node._replace(role=role, bytes=max(0, attributes.get("comm_size") or 0))


def _attribute(message: bytes) -> tuple[str, str | int | None]:
    name = ""
    value: str | int | None = None
    for field in sound_fields(message):
        if field.number == 1:
            name = field.body.decode("utf-8", "replace")
        elif field.number == 29:
            value = clean(field.body.decode("utf-8", "replace"))
        elif field.number in _WHOLE_VALUES and field.kind == VARINT:
            value = signed(field.integer)
    return name, value


def _node(
    number: int,
    name: str,
    parent: int | None,
    attributes: Mapping[str, int | None],
    time_us: Fraction,
    *,
    on_gpu: bool,
) -> _Node:
    role = "kernel" if on_gpu else "range" if attributes.get("scope") == _USER_SCOPE else "operator"
    parent = None if parent == number else parent  # the root of older files
    stream = max(0, attributes.get("stream") or 0) if on_gpu else None
    return _Node(number, name, parent, max(0, attributes.get("tid") or 0), stream, role, time_us, 0)


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST else None


def _decimal(text: str) -> Decimal | None:
    try:
        return Decimal(text)
    except ArithmeticError:  # an exponent beyond all numbers
        return None


def _exact(value: object) -> Fraction:
    """Return a duration; 0 for what is none. Checked before it is expanded: 1e999999999 has as many digits."""
    if isinstance(value, Decimal) and not (value.is_finite() and -100 < value.adjusted() < 18):
        return Fraction(0)
    known = isinstance(value, (int, Decimal)) and not isinstance(value, bool) and 0 <= value < _LARGEST
    return Fraction(value) if known and isinstance(value, (int, Decimal)) else Fraction(0)


FORMAT = Format(
    "execution_trace",
    "execution trace: PyTorch (ExecutionTraceObserver), Chakra (.et)",
    suffixes=(".et", ".json"),
    sniff=sniff,
    read=read,
)
