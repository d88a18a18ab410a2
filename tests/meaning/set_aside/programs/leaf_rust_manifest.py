"""Finds rust on leaves: one endless loop with validation, best checkpoint and early stopping, own Dataset and Sampler.

Planted: `Leaves.about` opens and parses the whole manifest (JSON) for every leaf, only to take one entry out of it.
Truth: as many updates as early stopping allows (at most 120), each 20th followed by a validation with its checkpoint,
which stands beside. Limited by data, in Python's JSON parser (one may say python); the manifest could be parsed once,
so the gain is the measured time of all calls but the first. Updates with a full garbage collection stand out.
"""

import gc
import itertools
import json
import random
import tempfile
import time
from bisect import bisect
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler
from truth import problem, tile, write


class Leaves(Dataset):
    parsing = []

    def __init__(self, folder, part):
        self.folder, self.pictures = Path(folder), np.load(Path(folder, "leaves.npy"), mmap_mode="r")
        names = json.loads((self.folder / "manifest.json").read_text())
        self.names = sorted(name for name, entry in names.items() if entry["part"] == part)
        self.rusty = [names[name]["rust"] > 0 for name in self.names]

    def about(self, name):
        begin = time.monotonic_ns()
        with open(self.folder / "manifest.json") as manifest:
            entry = json.load(manifest)[name]
        Leaves.parsing.append(time.monotonic_ns() - begin)
        return entry

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        entry = self.about(self.names[index])
        top, left = entry["box"]
        crop = np.array(self.pictures[entry["row"], :, top : top + 36, left : left + 36], dtype=np.float32)
        return torch.from_numpy(crop) / 255 * entry["exposure"], float(self.rusty[index])


class Balanced(Sampler):
    """As many rusty leaves as sound ones, in random order, for ever."""

    def __init__(self, rusty, seed=0):
        self.sides = [[i for i, each in enumerate(rusty) if each == side] for side in (False, True)]
        self.random = random.Random(seed)

    def __iter__(self):
        for side in itertools.cycle(self.sides):
            yield self.random.choice(side)


def grow(folder, count=700):
    rng = np.random.default_rng(2)
    pictures = rng.integers(20, 120, (count, 3, 48, 48), dtype=np.uint8)
    manifest = {}
    for row in range(count):
        spots = int(rng.integers(3, 9)) * (row % 3 == 0)
        for y, x in rng.integers(8, 38, (spots, 2)):
            pictures[row, 0, y : y + 3, x : x + 3] += 70
        manifest[f"leaf-{row:05d}"] = {
            "row": row, "part": "held out" if row % 10 == 9 else "train", "rust": spots, "exposure": 1.0 + row % 7 / 50,
            "box": rng.integers(0, 12, 2).tolist(), "plot": f"B{row % 23}", "camera": "field-2",
        }  # fmt: skip
    np.save(Path(folder, "leaves.npy"), pictures)
    Path(folder, "manifest.json").write_text(json.dumps(manifest, indent=2))


def build():
    layers = []
    for before, width in ((3, 20), (20, 40), (40, 40)):
        layers += [nn.Conv2d(before, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(40, 1), nn.Flatten(0))


def main(folder, patience=3, most=120, every=20):
    grow(folder)
    train = Leaves(folder, "train")
    held_x, held_y = next(iter(DataLoader(Leaves(folder, "held out"), batch_size=1000)))
    model = build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    criterion = nn.BCEWithLogitsLoss()
    batches = iter(DataLoader(train, batch_size=16, sampler=Balanced(train.rusty)))
    full = []
    gc.callbacks.append(lambda phase, info: full.append(time.monotonic_ns()) if info["generation"] == 2 else None)
    Leaves.parsing.clear()
    best, waited, kinds = float("inf"), 0, []
    ns = dict.fromkeys(("data", "forward", "backward", "optimizer", "validation", "checkpoint"), 0)
    cuts = [time.monotonic_ns()]
    for update in itertools.count(1):
        x, y = next(batches)
        t0 = time.monotonic_ns()
        loss = criterion(model(x), y.float())
        t1 = time.monotonic_ns()
        optimizer.zero_grad()
        t2 = time.monotonic_ns()
        loss.backward()
        t3 = time.monotonic_ns()
        optimizer.step()
        cuts.append(time.monotonic_ns())
        kinds.append("train")
        spans = {"data": t0 - cuts[-2], "forward": t1 - t0, "backward": t3 - t2, "optimizer": t2 - t1 + cuts[-1] - t3}
        ns = {name: ns[name] + spans.get(name, 0) for name in ns}
        if update % every:
            continue
        model.eval()
        with torch.inference_mode():
            score = criterion(model(held_x), held_y.float()).item()
        model.train()
        t4 = time.monotonic_ns()
        waited += 1
        if score < best:
            best, waited = score, 0
            torch.save({"model": model.state_dict(), "update": update}, Path(folder, "best.pt"))
        ns["validation"] += t4 - cuts[-1]
        ns["checkpoint"] += time.monotonic_ns() - t4
        print(f"update {update}: {loss.item():.3f}, held out {score:.3f} (best {best:.3f})")
        cuts, kinds = [*cuts, time.monotonic_ns()], [*kinds, "validation"]
        if waited >= patience or update >= most:
            break
    what, where = "the whole manifest is parsed for every leaf", "leaf_rust_manifest.py:Leaves.about"
    slow = {bisect(cuts, moment) - 1: "a full garbage collection" for moment in full}
    found = problem(what, where, "data", wasted_ns=sum(Leaves.parsing[1:]))
    fields = {"limiting": "data", "limiting_also": ["python"], "phases_ns": ns, "problem": found, "outliers": slow}
    write(tile(cuts, kinds), unit="optimizer update", beside=["validation"], **fields)


if __name__ == "__main__":
    torch.manual_seed(3)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        main(place)
