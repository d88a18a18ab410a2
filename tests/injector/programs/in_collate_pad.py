"""Bag-of-words sentiment model on sentences of different lengths."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=80)
parser.add_argument("--batch", type=int, default=512)
args = parser.parse_args()
DEFECT = args.defect == "on"
torch.set_num_threads(1)
torch.manual_seed(0)

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

def make_sentences(count):
    rng = np.random.default_rng(2)
    lengths = rng.integers(40, 200, 1024)
    base = [torch.from_numpy(rng.integers(1, 5000, n)) for n in lengths]
    return [(base[i % 1024], i % 2) for i in range(count)]


def pad_batch(items):
    labels = torch.tensor([label for _, label in items])
    if DEFECT:
        rows = [tokens.tolist() for tokens, _ in items]
        longest = max(len(row) for row in rows)
        return torch.tensor([row + [0] * (longest - len(row)) for row in rows]), labels  # DEFECT
    return pad_sequence([tokens for tokens, _ in items], batch_first=True), labels


model = torch.nn.Sequential(torch.nn.EmbeddingBag(5000, 64, padding_idx=0), torch.nn.Linear(64, 1024), torch.nn.ReLU(),
                            torch.nn.Linear(1024, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
loader = DataLoader(make_sentences(args.batch * args.steps), batch_size=args.batch, collate_fn=pad_batch)
times, total = Times(), 0.0
before = time.perf_counter_ns()
for tokens, labels in loader:
    loss = torch.nn.functional.cross_entropy(model(tokens), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
    now = time.perf_counter_ns()
    times.append(now - before)
    before = now
report(times, total)
