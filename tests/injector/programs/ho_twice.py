"""Digit classifier that reports its accuracy at every step."""
import argparse, json, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch", type=int, default=48)
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

class Digits(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.Conv2d(8, 16, 3, padding=1)
        self.last = torch.nn.Linear(16 * 49, 10)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.first(x)), 2)
        x = torch.max_pool2d(torch.relu(self.second(x)), 2)
        return self.last(x.flatten(1))


class Trainer:
    def __init__(self):
        self.model, self.hits = Digits(), 0
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)

    def accuracy(self, images, labels, scores):
        if DEFECT:
            scores = self.model(images)  # DEFECT
        return (scores.argmax(1) == labels).float().mean().item()

    def step(self, images, labels):
        scores = self.model(images)
        loss = torch.nn.functional.cross_entropy(scores, labels)
        self.hits += self.accuracy(images, labels, scores)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


images, labels = torch.randn(4, args.batch, 1, 28, 28), torch.randint(0, 10, (4, args.batch))
trainer = Trainer()
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    total += trainer.step(images[step % 4], labels[step % 4])
    times.append(time.perf_counter_ns() - before)
report(times, total + trainer.hits)
