"""A small network is trained on well logs; the norms of all gradients and weights go into an SQLite file after every update.

Truth: 150 updates, limited by io: `Journal.put` commits every row by itself, and each commit waits for the disk. One
commit for an update's rows does the same; its time is measured after the loop, and the difference is the gain.
"""

import sqlite3
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import nn
from truth import problem, tile, write


class Journal:
    def __init__(self, path):
        self.db = sqlite3.connect(path)
        self.db.execute("CREATE TABLE IF NOT EXISTS norms (step INTEGER, name TEXT, weight REAL, gradient REAL)")
        self.db.execute("PRAGMA synchronous = FULL")
        self.db.commit()

    def put(self, step, name, weight, gradient):
        self.db.execute("INSERT INTO norms VALUES (?, ?, ?, ?)", (step, name, weight, gradient))
        self.db.commit()

    def put_all(self, rows):
        self.db.executemany("INSERT INTO norms VALUES (?, ?, ?, ?)", rows)
        self.db.commit()

    def __len__(self):
        return self.db.execute("SELECT COUNT(*) FROM norms").fetchone()[0]


def log_chunks(steps, batch=64):
    depth = torch.linspace(0, 30, 24)
    for _ in range(steps):
        shift = torch.rand(batch, 1) * 6
        gamma = torch.sin(depth + shift) + 0.2 * torch.randn(batch, 24)
        yield gamma, (shift.squeeze(1) > 3).float()


def train(journal, steps=150):
    net = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    ns = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0, "journal": 0}
    journal_cpu = 0
    cuts = [time.monotonic_ns()]
    for step, (x, y) in enumerate(log_chunks(steps)):
        t0 = time.monotonic_ns()
        loss = nn.functional.binary_cross_entropy_with_logits(net(x).squeeze(1), y)
        t1 = time.monotonic_ns()
        opt.zero_grad()
        t2 = time.monotonic_ns()
        loss.backward()
        t3 = time.monotonic_ns()
        opt.step()
        t4 = time.monotonic_ns()
        cpu = time.thread_time_ns()
        for name, p in net.named_parameters():
            journal.put(step, name, p.norm().item(), p.grad.norm().item())
        t5 = time.monotonic_ns()
        journal_cpu += time.thread_time_ns() - cpu
        ns["data"] += t0 - cuts[-1]
        ns["forward"] += t1 - t0
        ns["backward"] += t3 - t2
        ns["optimizer"] += t2 - t1 + t4 - t3
        ns["journal"] += t5 - t4
        cuts.append(t5)
    print(f"loss {loss.item():.3f}, {len(journal)} rows, {100 * journal_cpu / ns['journal']:.0f} % of the journal's time on the CPU")
    once = []
    for _ in range(10):
        begin = time.monotonic_ns()
        journal.put_all([(-1, name, p.norm().item(), p.grad.norm().item()) for name, p in net.named_parameters()])
        once.append(time.monotonic_ns() - begin)
    return cuts, ns, ns["journal"] - steps * sorted(once)[5]


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(9)
    with TemporaryDirectory(dir=Path.cwd()) as folder:
        cuts, ns, wasted = train(Journal(Path(folder, "norms.db")))
    write(
        tile(cuts),
        unit="optimizer update",
        limiting="io",
        limiting_also=["synchronisation"],
        phases_ns=ns,
        problem=problem("every row is committed by itself", "well_log_sqlite.py:Journal.put", "io", wasted_ns=wasted),
    )
