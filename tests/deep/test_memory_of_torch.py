"""Memory by category against PyTorch's own profiler: a training on the CPU, recorded here.

The peer is torch/profiler/_memory_profiler.py (`prof._memory_profile()`), and what torch/cuda/_memory_viz.py makes
of it.
"""

from __future__ import annotations

import json
import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import strobe
from strobe.gpu.memory_blocks import memory_blocks
from strobe.gpu.memory_categories import CATEGORIES, categories

torch = pytest.importorskip("torch")

from torch.cuda._memory_viz import _profile_to_snapshot  # noqa: E402
from torch.profiler._memory_profiler import Action, MemoryProfileTimeline, TensorKey  # noqa: E402

STEPS = 4
NAMES = {
    "PARAMETER": "parameters", "GRADIENT": "gradients", "OPTIMIZER_STATE": "optimizer state", "INPUT": "inputs",
    "ACTIVATION": "activations", "AUTOGRAD_DETAIL": "autograd details", "TEMPORARY": "temporary", "unknown": "unknown",
}  # fmt: skip
Levels = dict[str, int]


def train() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(STEPS):
        x, y = torch.randn(512, 64), torch.randint(0, 10, (512,))
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@pytest.fixture(scope="module")
def profiled() -> Any:
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, record_shapes=True, with_stack=True
    ) as profile:
        train()
    return profile


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_CACHE", str(tmp_path / "cache"))


def by_category(trace: strobe.Trace) -> dict[int, Levels]:
    """Bytes of each category after each moment."""
    found: dict[int, Levels] = defaultdict(dict)
    for row in trace.memory(by="category", points=0).to_arrow().to_pylist():
        if row["category"] != "cache":
            found[row["time_ns"]][row["category"]] = row["allocated_bytes"]
    return found


def used(levels: Levels) -> Levels:
    """The categories that have anything."""
    return {name: size for name, size in levels.items() if size}


def category(memory: Any, key: Any, version: int) -> str:
    found = memory._categories.get(key, version)
    return NAMES["unknown" if found is None else found.name]


def test_a_snapshot_with_categories_has_the_sums_of_pytorch_after_every_event(tmp_path: Path, profiled: Any) -> None:
    path = tmp_path / "t.pickle"
    path.write_bytes(pickle.dumps(_profile_to_snapshot(profiled), protocol=4))
    memory = profiled._memory_profile()
    # Of what was there before, the file has no category until it changes.
    earlier = {key for _, action, key, _ in memory.timeline if action == Action.PREEXISTING}
    level: Levels = defaultdict(int)
    expected: list[Levels] = []

    def change(key: Any, version: int, size: int) -> None:
        level["unknown" if (key, version) in earlier else category(memory, key, version)] += size
        expected.append(used(level))

    for _, action, (key, version), size in memory.timeline:
        if not isinstance(key, TensorKey):
            continue
        if action == Action.PREEXISTING:
            level["unknown"] += size
        elif action == Action.CREATE:
            change(key, version, size)
        elif action == Action.DESTROY:
            change(key, version, -size)
        else:
            change(key, version, -size)
            change(key, version + 1, size)
    found = [used(levels) for _, levels in sorted(by_category(strobe.open(path)).items())]
    assert len(found) > 100
    assert found == expected


def test_a_timeline_of_pytorch_has_its_sums_at_every_moment(tmp_path: Path, profiled: Any) -> None:
    path = tmp_path / "t.raw.json"
    MemoryProfileTimeline(profiled._memory_profile()).export_memory_timeline_raw(str(path), "cpu")
    level: Levels = defaultdict(int)
    expected: dict[int, Levels] = {}
    order = ("parameters", "optimizer state", "inputs", "temporary", "activations", "gradients", "autograd details")
    rows = json.loads(path.read_text())
    first = min(row[0] for row in rows if row[0] >= 0)
    for time, _, size, number in rows:
        level[(*order, "unknown")[number]] += size
        expected[max(time, first) - first] = dict(level)
    last: Levels = {}
    for time, levels in sorted(by_category(strobe.open(path)).items()):
        last |= levels  # each category has its own moments
        assert used(last) == used(expected[time])


def test_a_profile_has_what_a_backward_pass_and_an_optimizer_leave(tmp_path: Path, profiled: Any) -> None:
    """Bytes at the ends of steps and in all: a profile does not have the way of tensors, so inputs are unknown."""
    path = tmp_path / "t.json"
    profiled.export_chrome_trace(str(path))
    memory = profiled._memory_profile()
    allocated: Levels = defaultdict(int)
    for _, action, (key, version), size in memory.timeline:
        if action == Action.CREATE:
            allocated[category(memory, key, version) if isinstance(key, TensorKey) else "unknown"] += size
    trace = strobe.open(path)
    (pool,) = memory_blocks(trace)
    new, what = ~pool.blocks.earlier, categories(trace, pool)
    found = {name: int(pool.blocks.size[new & (what == number)].sum()) for number, name in enumerate(CATEGORIES)}
    for exact in ("gradients", "optimizer state", "autograd details"):
        assert found[exact] == allocated[exact] > 0
    assert 0.9 * allocated["activations"] < found["activations"] <= allocated["activations"]
    # What no rule is about is called unknown, never something that it is not.
    assert found["unknown"] <= allocated["unknown"] + allocated["inputs"]
    assert found["inputs"] == 0
