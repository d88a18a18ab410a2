"""One public trace of a GPU in the forms that tools and people give it: trimmed, without stacks, packed, cut off.

Every form has the same answers, as far as the file has what they need.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import strobe
from strobe.present.summary import summarise
from tests.public import FOLDER

# One of each generation of PyTorch's profiler, and small.
NAMES = ("kineto/alexnet_critical_path.json.gz", "kineto/nccl_data.json.gz", "kineto/two_ranks/sampled_rank-0.json.gz")
# What needs to know what launched a kernel; and steps without marks, which begin with whatever function there is.
MAY_DIFFER = {"without correlations": {"operators", "launches", "idle", "path"}}
UNMARKED_MAY_DIFFER = {"with stacks": {"steps", "path"}}

Event = dict[str, Any]


def flows(event: Event) -> bool:
    return event["ph"] in ("s", "t", "f")


def time_of(event: Event) -> Decimal:
    return Decimal(str(event.get("ts", 0)).removeprefix("\0"))


def without(*keys: str) -> Callable[[list[Event]], list[Event]]:
    """Events without these arguments."""

    def trimmed(events: list[Event]) -> list[Event]:
        return [
            {**each, "args": {key: value for key, value in each["args"].items() if key.lower() not in keys}}
            if isinstance(each.get("args"), dict)
            else each
            for each in events
        ]

    return trimmed


def with_stacks(events: list[Event]) -> list[Event]:
    """As with_stack=True: a function of Python around every operator."""
    found = []
    for each in events:
        if each.get("cat") == "cpu_op" and each["name"].startswith("aten::"):
            found.append({**each, "cat": "python_function", "name": f"model.py(7): call {each['name']}", "args": {}})
        found.append(each)
    return found


VARIANTS: dict[str, Callable[[list[Event]], list[Event]]] = {
    "bare": lambda events: events,  # no properties of the file, thus no deviceProperties
    "without metadata": lambda events: [each for each in events if each["ph"] != "M"],
    "with stacks": with_stacks,
    "without flows": lambda events: [each for each in events if not flows(each)],
    "without external ids": without("external id"),
    "without correlations": without("correlation"),
    "sorted by time": lambda events: sorted(events, key=time_of),
    "without shapes": without("input dims", "input type", "input strides", "concrete inputs"),
}


def table(trace: strobe.Trace, name: str, columns: list[str], **options: Any) -> list[tuple[object, ...]]:
    return sorted(trace.ask(name, **options).select(columns).rows(), key=repr)


def answers(trace: strobe.Trace) -> dict[str, object]:
    return {
        "kernels": table(trace, "kernels", ["name", "calls", "total_ns", "kind"]),
        "operators": table(trace, "kernels", ["name", "operator", "calls", "total_ns"], by="operator"),
        "launches": table(trace, "launches", ["name", "launches", "all_avg_ns"]),
        "streams": table(trace, "streams", ["stream", "busy_ns", "kernels", "copies", "alone_ns"]),
        "overlap": table(trace, "overlap", ["computation_ns", "communication_ns", "copy_ns", "idle_ns"]),
        "idle": table(trace, "idle", ["cause", "idle_ns"]),
        "steps": table(trace, "steps", ["start_ns", "duration_ns"]),
        "path": table(trace, "critical_path", ["kind", "time_ns"]),
        "host": trace.sql(
            "select name, count(*), sum(duration_ns)::bigint from spans where name like 'aten::%' group by 1 order by 1"
        ).rows(),
    }


def read(path: Path) -> dict[str, Any]:
    """The file as JSON has it; decimals are texts with a mark, so that they can be written as they were."""
    text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace").replace(": N/A", ": null")
    whole: dict[str, Any] = json.loads(text, parse_float="\0{}".format, strict=False)
    return whole


def written(whole: dict[str, Any]) -> str:
    return re.sub(r'"\\u0000([^"]*)"', r"\1", json.dumps(whole))


@pytest.fixture(scope="module")
def whole(public_cache: Path) -> Callable[[str], dict[str, object]]:
    known: dict[str, dict[str, object]] = {}

    def of(name: str) -> dict[str, object]:
        if name not in known:
            with strobe.open(FOLDER / name) as trace:
                known[name] = answers(trace)
        return known[name]

    return of


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", NAMES)
def test_a_trimmed_trace_has_the_same_answers(
    public_folder: Path, tmp_path: Path, whole: Any, name: str, variant: str
) -> None:
    file = read(public_folder / name)
    file["traceEvents"] = VARIANTS[variant](file["traceEvents"])
    (tmp_path / "t.json").write_text(written({"traceEvents": file["traceEvents"]} if variant == "bare" else file))
    found, expected = answers(strobe.open(tmp_path / "t.json")), whole(name)
    different = {question for question in expected if found[question] != expected[question]}
    marked = any(str(each.get("name")).startswith("ProfilerStep#") for each in file["traceEvents"])
    may = MAY_DIFFER.get(variant, set()) | (set() if marked else UNMARKED_MAY_DIFFER.get(variant, set()))
    assert different <= may, variant
    assert found["kernels"]


@pytest.mark.parametrize("name", NAMES)
def test_one_marked_step_of_a_trace_is_that_step(public_folder: Path, tmp_path: Path, whole: Any, name: str) -> None:
    file = read(public_folder / name)
    marks = [each for each in file["traceEvents"] if str(each.get("name")).startswith("ProfilerStep#")]
    kept = marks[len(marks) // 2] if marks else {}
    dropped = [id(each) for each in marks if each["name"] != kept["name"]]
    file["traceEvents"] = [each for each in file["traceEvents"] if id(each) not in dropped]
    (tmp_path / "t.json").write_text(written(file))
    with strobe.open(tmp_path / "t.json") as trace:
        steps = table(trace, "steps", ["duration_ns"])
        assert answers(trace)["kernels"] == whole(name)["kernels"]
    if dropped:
        assert steps == [(int(Decimal(str(kept["dur"]).removeprefix("\0")) * 1000),)]


def zstd(data: bytes) -> bytes:
    packed = pa.compress(data, "zstd", asbytes=True)
    assert isinstance(packed, bytes)
    return packed


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_a_packed_trace_has_the_same_answers(tmp_path: Path, whole: Any, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / "packed.json").write_bytes(pack(gzip.decompress((FOLDER / NAMES[0]).read_bytes())))
    assert answers(strobe.open(tmp_path / "packed.json")) == whole(NAMES[0])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("part", [0.3, 0.95])
def test_what_is_before_a_cut_is_as_in_the_whole(public_folder: Path, tmp_path: Path, name: str, part: float) -> None:
    data = gzip.decompress((public_folder / name).read_bytes())
    (tmp_path / "t.json").write_bytes(data[: int(len(data) * part)])
    query = "select name, role, duration_ns from spans"
    with strobe.open(tmp_path / "t.json") as cut, strobe.open(public_folder / name) as trace:
        assert not summarise(cut).quality.complete
        found, expected = (Counter(each.sql(query).rows()) for each in (cut, trace))
        answers(cut)
    assert found.total() > 0
    assert found <= expected
    assert part * 0.8 < found.total() / expected.total() < 1
