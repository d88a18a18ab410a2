"""A frame classifier for speech that keeps weights, optimizer and place in files after each update, synced to the disk.

Files are replaced atomically as careful people do, but after each of 240 updates. Truth: 240 updates, limited by input
and output; files at the end of the run would do, so the gain is the measured time of `keep`.
"""

import os
import time
from contextlib import contextmanager

import torch
from torch import nn
from truth import problem, tile, write

torch.manual_seed(1)
torch.set_num_threads(1)
sums = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0, "checkpoint": 0}


@contextmanager
def clock(name):
    begin = time.monotonic_ns()
    yield
    sums[name] += time.monotonic_ns() - begin


def keep(**parts):
    folder = os.open(".", os.O_RDONLY)
    for name, part in parts.items():
        with open(f"{name}.tmp", "wb") as file:
            torch.save(part, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{name}.tmp", f"{name}.pt")
        os.fsync(folder)
    os.close(folder)


def frames(count, batch=32):
    for _ in range(count):
        yield torch.randn(batch, 11 * 40), torch.randint(0, 200, (batch,))


model = nn.Sequential(nn.Linear(440, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 200))
optimizer = torch.optim.SGD(model.parameters(), lr=0.08, momentum=0.9)
source = frames(240)
cuts = [time.monotonic_ns()]
for step in range(240):
    with clock("data"):
        x, y = next(source)
    with clock("forward"):
        loss = nn.functional.cross_entropy(model(x), y)
    with clock("backward"):
        loss.backward()
    with clock("optimizer"):
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        optimizer.zero_grad()
    with clock("checkpoint"):
        keep(model=model.state_dict(), optimizer=optimizer.state_dict(), place={"step": step})
    cuts.append(time.monotonic_ns())
print(f"loss {loss.item():.3f}")

write(
    tile(cuts, "train+checkpoint"),
    unit="optimizer update",
    limiting="io",
    phases_ns=sums,
    problem=problem(
        "weights are written and synced after every update", "speech_frames.py:keep", "io", wasted_ns=sums["checkpoint"]
    ),
)
