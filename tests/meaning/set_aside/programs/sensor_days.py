"""Forecasts a greenhouse's humidity: a GRU reads hours of ten sensors; batches come from an iterator class, `Days`.

Planted: each file holds a batch, and every 12th lies in a cold archive, which takes 120 ms to answer (slept here), on
top of reading it; copied to the local disk before, it would cost what the others cost. Truth: 3 passes of 96 updates,
288 in all; updates 11, 23, 35, ... stand out; limited by data, in `Days.__next__`; the gain is the measured wait for
the archive.
"""

import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from truth import problem, tile, write


class Days:
    """Iterates over the files of a folder, one batch each, in order; can be iterated over again."""

    def __init__(self, folder):
        self.files = sorted(Path(folder).glob("*.npy"))
        self.waited = 0

    def __iter__(self):
        self.at = 0
        return self

    def __next__(self):
        if self.at == len(self.files):
            raise StopIteration
        path = self.files[self.at]
        self.at += 1
        if path.stem.endswith("cold"):
            began = time.monotonic_ns()
            time.sleep(0.12)
            self.waited += time.monotonic_ns() - began
        hours = torch.from_numpy(np.load(path))
        hours = (hours - hours.mean((0, 1))) / hours.std((0, 1))
        return hours[:, :-1], hours[:, -1, :1]


def record(folder, batches=96):
    folder.mkdir()
    rng = np.random.default_rng(8)
    for i in range(batches):
        series = rng.normal(size=(48, 13, 10)).cumsum(1).astype(np.float32)
        np.save(folder / f"{i:03d}{'_cold' if i % 12 == 11 else ''}.npy", series)


def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    record(Path("greenhouse"))
    days = Days("greenhouse")
    gru, head = nn.GRU(10, 32, batch_first=True), nn.Linear(32, 1)
    model = nn.ModuleList([gru, head])
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    clock = dict.fromkeys(["data", "forward", "backward", "optimizer"], 0)
    cuts = [time.monotonic_ns()]
    for epoch in range(3):
        for hours, target in days:
            got = time.monotonic_ns()
            loss = nn.functional.l1_loss(head(gru(hours)[0][:, -1]), target)
            forward = time.monotonic_ns()
            loss.backward()
            backward = time.monotonic_ns()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            end = time.monotonic_ns()
            for name, ns in zip(clock, (got - cuts[-1], forward - got, backward - forward, end - backward)):
                clock[name] += ns
            cuts.append(end)
        print(f"epoch {epoch + 1}: {loss.item():.3f}")
    write(
        tile(cuts),
        unit="optimizer update",
        limiting="data",
        limiting_also=["io"],
        levels={"epoch": 3},
        phases_ns=clock,
        outliers=dict.fromkeys(range(11, 288, 12), "its file is in the cold archive"),
        problem=problem("every 12th file is cold", "sensor_days.py:Days.__next__", "data", wasted_ns=days.waited),
    )


if __name__ == "__main__":
    main()
