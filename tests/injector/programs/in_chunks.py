"""Regression on a data set kept in compressed chunks."""
import argparse, json, os, statistics, time, zlib
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=80)
parser.add_argument("--batch", type=int, default=64)
args = parser.parse_args()
DEFECT = args.defect == "on"
torch.set_num_threads(1)
torch.manual_seed(0)
PER_CHUNK, WIDTH = 32, 512

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

class ChunkedTable(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(5)
        self.count, self.last, self.last_number = count, None, -1
        tables = rng.integers(0, 50, (8, PER_CHUNK, WIDTH)).astype(np.float32)
        self.chunks = [zlib.compress(table.tobytes(), 1) for table in tables]

    def __len__(self):
        return self.count

    def chunk(self, number):
        if DEFECT or number != self.last_number:
            self.last = np.frombuffer(zlib.decompress(self.chunks[number]), np.float32).reshape(PER_CHUNK, WIDTH)  # DEFECT
            self.last_number = number
        return self.last

    def __getitem__(self, index):
        row = self.chunk(index // PER_CHUNK % 8)[index % PER_CHUNK]
        return torch.from_numpy(row / 50), np.float32(row[:8].mean() / 50)


class Trainer:
    def __init__(self):
        self.model = torch.nn.Sequential(torch.nn.Linear(WIDTH, 1400), torch.nn.GELU(), torch.nn.Linear(1400, 512),
                                         torch.nn.GELU(), torch.nn.Linear(512, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4)

    def train_step(self, rows, targets):
        self.optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(self.model(rows)[:, 0], targets)
        loss.backward()
        self.optimizer.step()
        return loss.item()


trainer = Trainer()
times, total = Times(), 0.0
before = time.perf_counter_ns()
for rows, targets in DataLoader(ChunkedTable(args.batch * args.steps), batch_size=args.batch):
    total += trainer.train_step(rows, targets)
    now = time.perf_counter_ns()
    times.append(now - before)
    before = now
report(times, total)
