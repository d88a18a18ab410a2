"""Letter recogniser; the letter error rate of each batch is kept for the curve."""
import argparse, json, os, statistics, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=120)
parser.add_argument("--batch", type=int, default=20)
parser.add_argument("--length", type=int, default=36)
args = parser.parse_args()
DEFECT = args.defect == "on"
torch.set_num_threads(1)
torch.manual_seed(0)
LETTERS = 28

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

def distance(guess, truth):
    """Levenshtein distance of two sequences."""
    row = list(range(len(truth) + 1))
    for i, letter in enumerate(guess, 1):
        last, row[0] = row[0], i
        for j, wanted in enumerate(truth, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (letter != wanted))  # DEFECT
    return row[-1]


def distances(guesses, truths):
    """The same for a batch of sequences of one length."""
    places = np.arange(truths.shape[1] + 1)
    rows = np.tile(places, (len(truths), 1))
    for i in range(guesses.shape[1]):
        fresh = np.minimum(rows[:, 1:] + 1, rows[:, :-1] + (truths != guesses[:, i, None]))
        rows = np.concatenate([np.full((len(truths), 1), i + 1), fresh], 1)
        rows = np.minimum.accumulate(rows - places, axis=1) + places
    return rows[:, -1]


def error_rate(guesses, truths):
    if DEFECT:
        wrong = sum(distance(guess, truth) for guess, truth in zip(guesses.tolist(), truths.tolist()))
    else:
        wrong = int(distances(guesses.numpy(), truths.numpy()).sum())
    return wrong / truths.numel()


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Sequential(nn.Linear(40, 160), nn.ReLU())
        self.gru = nn.GRU(160, 128, batch_first=True)
        self.head = nn.Linear(128, LETTERS)

    def forward(self, frames):
        return self.head(self.gru(self.front(frames))[0])


model = Recogniser()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
truths = torch.randint(0, LETTERS, (6, args.batch, args.length))
frames = torch.randn(LETTERS, 40)[truths] + 0.5 * torch.randn(6, args.batch, args.length, 40)
times, curve = Times(), []
for step in range(args.steps):
    before = time.perf_counter_ns()
    scores = model(frames[step % 6])
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), truths[step % 6].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    curve.append(error_rate(scores.detach().argmax(2), truths[step % 6]))
    times.append(time.perf_counter_ns() - before)
report(times, sum(curve))
