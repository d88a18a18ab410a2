"""Segmentation head with a confusion matrix kept during training."""
import argparse, json, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=110)
parser.add_argument("--pixels", type=int, default=65536)
args = parser.parse_args()
DEFECT = args.defect == "on"
torch.set_num_threads(1)
torch.manual_seed(0)
CLASSES = 6

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

class Confusion:
    def __init__(self):
        self.matrix, self.named = torch.zeros(CLASSES, CLASSES, dtype=torch.long), torch.zeros(CLASSES, dtype=torch.long)

    def update(self, guesses, labels):
        if DEFECT:
            rows, named = [[0] * CLASSES for _ in range(CLASSES)], [0] * CLASSES
            for guess, label in zip(guesses.tolist(), labels.tolist()):
                rows[label][guess] += 1  # DEFECT
                named[guess] += 1
                if guess != label:
                    named[label] += 1
            self.matrix += torch.tensor(rows)
            self.named += torch.tensor(named)
        else:
            rows = torch.bincount(labels * CLASSES + guesses, minlength=CLASSES * CLASSES).view(CLASSES, CLASSES)
            self.matrix += rows
            self.named += rows.sum(0) + rows.sum(1) - rows.diagonal()


class Trainer:
    def __init__(self):
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 24), torch.nn.ReLU(), torch.nn.Linear(24, CLASSES))
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.confusion = Confusion()

    def step(self, pixels, labels):
        loss = torch.nn.functional.cross_entropy(self.net(pixels[::8]), labels[::8])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        with torch.inference_mode():
            self.confusion.update(self.net(pixels).argmax(1), labels)


x, y = torch.randn(args.pixels, 8), torch.randint(0, CLASSES, (args.pixels,))
trainer = Trainer()
times = Times()
while len(times) < args.steps:
    before = time.perf_counter_ns()
    trainer.step(x, y)
    times.append(time.perf_counter_ns() - before)
report(times, float((trainer.confusion.matrix.diagonal() / trainer.confusion.named).sum()))
