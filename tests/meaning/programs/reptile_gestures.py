"""Meta-learning of gestures by Reptile: a few functional updates for each of three tasks, then the weights move there.

Planted: `Archive.draw` opens the compressed archive and inflates five classes for each task, though all of it fits into
memory. Truth: 60 meta-updates of 3 tasks with 5 inner updates each, and 4 validations on new tasks beside them. Limited
by data (inflating is zlib's work: one may say io or operators); all calls of `Archive.classes` are measured, what
inflating every class once takes is measured after the loop, and the difference is the gain. Meta-updates with a full
garbage collection stand out.
"""

import gc
import os
import tempfile
from bisect import bisect
from time import monotonic_ns

import numpy as np
import torch
from torch import nn
from torch.func import functional_call
from truth import problem, tile, write

SPENT = dict.fromkeys(("data", "forward", "backward", "optimizer", "validation"), 0)


class Stopwatch:
    def __init__(self):
        self.last, self.silent = monotonic_ns(), False

    def mark(self, phase):
        now = monotonic_ns()
        SPENT["validation" if self.silent else phase] += now - self.last
        self.last = now


class Archive:
    def __init__(self, path, names):
        self.path, self.names, self.reading = path, names, 0
        self.rng = np.random.default_rng(3)

    def classes(self, names):
        begin = monotonic_ns()
        with np.load(self.path) as stored:
            found = [stored[name] for name in names]
        self.reading += monotonic_ns() - begin
        return found

    def draw(self, ways=5, shots=8):
        """A task: some classes, and twice as many examples of each as there are shots."""
        found = self.classes(self.rng.choice(self.names, ways, replace=False))
        picked = np.stack([each[self.rng.choice(len(each), 2 * shots, replace=False)] for each in found])
        x = torch.from_numpy(picked.astype(np.float32) / 1000)
        y = torch.arange(ways).repeat_interleave(shots)
        return (x[:, :shots].flatten(0, 1), y), (x[:, shots:].flatten(0, 1), y)


def record(path, count=48, examples=720, moments=64):
    """Accelerometers, in thousandths: a few sines with noise for each class."""
    rng = np.random.default_rng(0)
    t = np.linspace(0, 1, moments)
    stored = {}
    for number in range(count):
        rates, phases = rng.uniform(1, 4, (6, 1)), rng.uniform(0, 6, (examples, 6, 1))
        waves = np.sin(2 * np.pi * rates * t + 0.2 * phases) + 0.4 * rng.normal(size=(examples, 6, moments))
        stored[f"gesture{number}"] = (1000 * waves).astype(np.int16)
    np.savez_compressed(path, **stored)
    return list(stored)


def adapt(model, weights, task, watch, updates=5, rate=0.05):
    (x, y), _ = task
    for _ in range(updates):
        loss = nn.functional.cross_entropy(functional_call(model, weights, (x,)), y)
        watch.mark("forward")
        slopes = torch.autograd.grad(loss, weights.values())
        watch.mark("backward")
        moved = zip(weights.items(), slopes, strict=True)
        weights = {name: (weight - rate * slope).detach().requires_grad_() for (name, weight), slope in moved}
        watch.mark("optimizer")
    return weights


def validate(model, weights, archive, watch, tasks=3):
    right = 0.0
    for _ in range(tasks):
        task = archive.draw()
        fitted = adapt(model, weights, task, watch)
        x, y = task[1]
        with torch.no_grad():
            right += (functional_call(model, fitted, (x,)).argmax(1) == y).float().mean().item()
    return right / tasks


def main(path, meta_updates=60, tasks=3, step=0.4):
    names = record(path)
    train, fresh = Archive(path, names[:36]), Archive(path, names[36:])
    layers = nn.Conv1d(6, 32, 5, 2, 2), nn.ReLU(), nn.Conv1d(32, 64, 5, 2, 2), nn.ReLU(), nn.Flatten()
    model = nn.Sequential(*layers, nn.Linear(1024, 5))
    weights = {name: weight.detach().clone().requires_grad_() for name, weight in model.named_parameters()}
    kinds, watch, full = [], Stopwatch(), []
    gc.callbacks.append(lambda phase, info: full.append(monotonic_ns()) if info["generation"] == 2 else None)
    cuts = [watch.last]
    for update in range(1, meta_updates + 1):
        ends = []
        for _ in range(tasks):
            task = train.draw()
            watch.mark("data")
            ends.append(adapt(model, weights, task, watch))
        with torch.no_grad():
            for name, weight in weights.items():
                weight.lerp_(torch.stack([end[name] for end in ends]).mean(0), step)
        watch.mark("optimizer")
        cuts.append(watch.last)
        kinds.append("train")
        if update % 15 == 0:
            watch.silent = True
            print(f"{update}: {validate(model, weights, fresh, watch):.1%} right on new gestures")
            watch.mark("validation")
            watch.silent = False
            cuts.append(watch.last)
            kinds.append("validation")
    outliers = {bisect(cuts, moment) - 1: "a full garbage collection" for moment in full}
    once = Archive(path, names)
    once.classes(names)
    where, wasted = "reptile_gestures.py:Archive.classes", train.reading + fresh.reading - once.reading
    write(
        tile(cuts, kinds),
        unit="meta-update",
        beside=["validation"],
        levels={"task": meta_updates * tasks, "inner update": meta_updates * tasks * 5},
        limiting="data",
        limiting_also=["io", "operators"],
        phases_ns=SPENT,
        outliers=outliers,
        problem=problem("classes are inflated from the archive for every task", where, "data", wasted_ns=wasted),
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        main(os.path.join(folder, "gestures.npz"))
