"""Predicts taxi fares from a file of JSON lines; batches come from a plain Python generator, without a DataLoader.

Planted: in every epoch `read_batches` reads the file anew, parses each trip's line, encodes its time, distance and
the trigrams of its street in Python, and makes tensors of lists, which takes far longer than the small network.
Truth: 8 epochs of 80 updates, 640 in all, limited by data (or Python), in `read_batches` and what it calls. Tensors
could be kept after the first epoch, so the gain is seven eighths of the measured time of data.
"""

import json
import math
import random
import tempfile
import time
import zlib
from datetime import datetime
from pathlib import Path

import torch
from torch import nn
from truth import problem, tile, write

BATCH, BATCHES, EPOCHS, BUCKETS = 256, 80, 8, 32


def record_trips(path):
    rng = random.Random(4)
    streets = ["Harbour Road", "Mill Lane", "Station Square", "Castle Street", "Long Acre", "Queen's Parade"]
    with open(path, "w") as out:
        for _ in range(BATCH * BATCHES):
            trip = {
                "at": f"2015-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}T{rng.randint(0, 23):02d}:15:00",
                "from": [51.5 + rng.gauss(0, 0.03), rng.gauss(-0.1, 0.05)],
                "to": [51.5 + rng.gauss(0, 0.03), rng.gauss(-0.1, 0.05)],
                "street": f"{rng.choice(streets)} {rng.randint(1, 200)}",
                "passengers": rng.randint(1, 4),
                "fare": 3 + rng.random() * 20,
            }
            out.write(json.dumps(trip) + "\n")


def haversine(a, b):
    lat1, lon1, lat2, lon2 = map(math.radians, (*a, *b))
    h = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    return 6371 * 2 * math.asin(math.sqrt(h))


def featurise(line):
    trip = json.loads(line)
    at = datetime.fromisoformat(trip["at"])
    hours = [0.0] * 24
    hours[at.hour] = 1.0
    days = [0.0] * 7
    days[at.weekday()] = 1.0
    street = [0.0] * BUCKETS
    name = f"^{trip['street'].lower()}$"
    for i in range(len(name) - 2):
        street[zlib.crc32(name[i : i + 3].encode()) % BUCKETS] += 1.0
    return [haversine(trip["from"], trip["to"]), trip["passengers"], *hours, *days, *street], trip["fare"]


def read_batches(path):
    rows, fares = [], []
    with open(path) as lines:
        for line in lines:
            row, fare = featurise(line)
            rows.append(row)
            fares.append(fare)
            if len(rows) == BATCH:
                yield torch.tensor(rows), torch.tensor(fares)
                rows, fares = [], []


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    path = Path(tempfile.mkdtemp(), "trips.jsonl")
    record_trips(path)
    net = nn.Sequential(nn.Linear(33 + BUCKETS, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 1))
    opt = torch.optim.Adam(net.parameters())
    phases = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0}
    cuts = [time.monotonic_ns()]
    for epoch in range(EPOCHS):
        total = 0.0
        for x, fare in read_batches(path):
            t0 = time.monotonic_ns()
            loss = nn.functional.smooth_l1_loss(net(x).squeeze(1), fare)
            t1 = time.monotonic_ns()
            opt.zero_grad()
            t2 = time.monotonic_ns()
            loss.backward()
            t3 = time.monotonic_ns()
            opt.step()
            t4 = time.monotonic_ns()
            total += loss.item()
            phases["data"] += t0 - cuts[-1]
            phases["forward"] += t1 - t0
            phases["backward"] += t3 - t2
            phases["optimizer"] += t2 - t1 + t4 - t3
            cuts.append(time.monotonic_ns())
        print(f"epoch {epoch}: loss {total / BATCHES:.3f}")
    path.unlink()
    write(
        tile(cuts),
        unit="optimizer update",
        limiting="data",
        limiting_also=["python"],
        levels={"epoch": EPOCHS},
        phases_ns=phases,
        problem=problem(
            "every epoch parses and encodes each trip again in Python",
            "taxi_fares.py:read_batches",
            "data",
            wasted_ns=phases["data"] * (EPOCHS - 1) // EPOCHS,
        ),
    )


if __name__ == "__main__":
    main()
