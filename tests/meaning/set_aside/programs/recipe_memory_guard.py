"""Recipes are embedded by a small network while a big index of Python objects lies in memory; a guard collects garbage every step.

Truth: 30 updates, limited by garbage-collection: `MemoryGuard.__exit__` calls gc.collect() over a big heap (the index and the libraries) that all
stay alive. Nothing is ever freed by it, thus the whole measured time of the calls is the gain.
"""

import gc
import time
from dataclasses import dataclass

import torch
from torch import nn
from truth import problem, tile, write


@dataclass
class Recipe:
    title: str
    steps: list
    amounts: dict


class MemoryGuard:
    """Keeps memory low on the small machines (added after the incident in March)."""

    def __init__(self):
        self.freed = 0
        self.ns = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        begin = time.monotonic_ns()
        self.freed += gc.collect()
        self.ns += time.monotonic_ns() - begin
        return False


def load_index(n=8_000):
    return [Recipe(f"recipe {i}", [["mix", i], ["bake", i % 60]], {"flour": [i % 500, "g"]}) for i in range(n)]


def batch_of(index, rng, size=64):
    picks = torch.randint(0, len(index), (size,), generator=rng).tolist()
    rows = [[len(index[i].title), index[i].steps[1][1], index[i].amounts["flour"][0]] for i in picks]
    x = torch.tensor(rows, dtype=torch.float32)
    return x / torch.tensor([12.0, 60.0, 500.0]), torch.tensor([i % 4 for i in picks])


def main():
    torch.set_num_threads(1)
    torch.manual_seed(3)
    index = load_index()
    rng = torch.Generator().manual_seed(3)
    encoder = nn.Sequential(nn.Linear(3, 64), nn.GELU(), nn.Linear(64, 64))
    classifier = nn.Linear(64, 4)
    optimizer = torch.optim.AdamW([*encoder.parameters(), *classifier.parameters()], lr=1e-3)
    guard = MemoryGuard()
    losses = []
    phases = dict.fromkeys(("data", "forward", "backward", "optimizer"), 0)
    cuts = [time.monotonic_ns()]
    for _ in range(30):
        with guard:
            x, y = batch_of(index, rng)
            t0 = time.monotonic_ns()
            loss = nn.functional.cross_entropy(classifier(encoder(x)), y)
            t1 = time.monotonic_ns()
            loss.backward()
            t2 = time.monotonic_ns()
            optimizer.step()
            optimizer.zero_grad()
            t3 = time.monotonic_ns()
            losses.append(loss.item())
        phases["data"] += t0 - cuts[-1]
        phases["forward"] += t1 - t0
        phases["backward"] += t2 - t1
        phases["optimizer"] += t3 - t2
        cuts.append(time.monotonic_ns())
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, {guard.freed} objects freed")
    write(
        tile(cuts),
        unit="optimizer update",
        limiting="garbage-collection",
        phases_ns=phases,
        problem=problem(
            "gc.collect() after every update, over a big heap that stays alive",
            "recipe_memory_guard.py:MemoryGuard.__exit__",
            "garbage-collection",
            wasted_ns=guard.ns,
        ),
    )


if __name__ == "__main__":
    main()
