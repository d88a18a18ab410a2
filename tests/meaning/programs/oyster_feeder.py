"""Grades oysters by scans: one thread fetches compressed scans from an archive and puts batches into a queue, the main thread trains.

Truth: 90 updates, limited by data: the feeder waits 45 ms for the archive for each batch, one after the other, so that the queue is empty
most of the time. Four feeders, measured after the loop, wait at the same time; the difference of waits is the gain.
One may say io (the archive), starvation, or synchronisation with the thread.
"""

import queue
import threading
import time
import zlib

import numpy as np
import torch
from torch import nn
from truth import problem, tile, write


class Archive:
    """Stands for a store with a latency of 45 ms."""

    def __init__(self, scans):
        rng = np.random.default_rng(23)
        self.scans = []
        for _ in range(scans):
            scan = np.cumsum(rng.integers(-2, 3, (16, 1, 28, 28)), axis=-1).astype(np.int8)
            self.scans.append((zlib.compress(scan.tobytes(), 1), rng.integers(0, 4, 16)))

    def fetch(self, key):
        time.sleep(0.045)
        return self.scans[key % len(self.scans)]


class Feeder(threading.Thread):
    def __init__(self, archive, keys, out):
        super().__init__(daemon=True)
        self.archive, self.keys, self.out = archive, keys, out

    def run(self):
        for key in self.keys:
            packed, grades = self.archive.fetch(key)
            scan = np.frombuffer(zlib.decompress(packed), np.int8).reshape(16, 1, 28, 28)
            self.out.put((torch.from_numpy(scan.astype(np.float32) / 16), torch.from_numpy(grades)))
        self.out.put(None)


class Grader:
    def __init__(self):
        self.net = nn.Sequential(
            nn.Conv2d(1, 8, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 12, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12 * 100, 4)
        )
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.02, momentum=0.9)
        self.loss = nn.CrossEntropyLoss()
        self.phases = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0}
        self.waits, self.cuts = [], []

    def fit(self, batches, feeders=1):
        self.cuts.append(time.monotonic_ns())
        ended = 0
        while True:
            begin = time.monotonic_ns()
            batch = batches.get()
            t0 = time.monotonic_ns()
            if batch is None:
                ended += 1
                if ended == feeders:
                    return
                continue
            scans, grades = batch
            self.optimizer.zero_grad()
            t1 = time.monotonic_ns()
            loss = self.loss(self.net(scans), grades)
            t2 = time.monotonic_ns()
            loss.backward()
            t3 = time.monotonic_ns()
            self.optimizer.step()
            t4 = time.monotonic_ns()
            self.waits.append(t0 - begin)
            self.phases["data"] += t0 - self.cuts[-1]
            self.phases["forward"] += t2 - t1
            self.phases["backward"] += t3 - t2
            self.phases["optimizer"] += t1 - t0 + t4 - t3
            self.cuts.append(time.monotonic_ns())


def main():
    torch.set_num_threads(1)
    torch.manual_seed(23)
    archive = Archive(40)
    batches = queue.Queue(maxsize=4)
    grader = Grader()
    feeder = Feeder(archive, range(90), batches)
    feeder.start()
    grader.fit(batches)
    feeder.join()
    print(f"{len(grader.waits)} updates, waited {sum(grader.waits) / 1e9:.2f} s")

    again = Grader()
    batches = queue.Queue(maxsize=4)
    for part in range(4):
        Feeder(archive, range(part, 40, 4), batches).start()
    again.fit(batches, feeders=4)
    rest = sum(again.waits[4:]) // len(again.waits[4:])
    write(
        tile(grader.cuts),
        unit="optimizer update",
        limiting="data",
        limiting_also=["io", "starvation", "synchronisation"],
        phases_ns=grader.phases,
        problem=problem(
            "one feeder waits for the archive for one batch after the other",
            "oyster_feeder.py:Feeder.run",
            "data",
            wasted_ns=sum(max(0, wait - rest) for wait in grader.waits[1:]),
        ),
    )


if __name__ == "__main__":
    main()
