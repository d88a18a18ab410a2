"""Click prediction with an AUC metric."""
import argparse, json, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch", type=int, default=2500)
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

class RocCurve:
    def __init__(self):
        self.scores, self.labels, self.value = [], [], 0.5

    def add(self, scores, labels):
        self.scores = (self.scores + scores.tolist())[-10000:]
        self.labels = (self.labels + labels.tolist())[-10000:]

    def compute(self):
        hits = area = 0
        for _, label in sorted(zip(self.scores, self.labels), reverse=True):
            if label:
                hits += 1
            else:
                area += hits
        self.value = area / max(1, hits * (len(self.labels) - hits))


def main():
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(6, args.batch, 64)
    y = (x[..., 0] + torch.randn(6, args.batch) > 0).float()
    curve = RocCurve()
    times, total = Times(), 0.0
    for step in range(args.steps):
        before = time.perf_counter_ns()
        scores = model(x[step % 6])[:, 0]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, y[step % 6])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve.add(scores.detach(), y[step % 6])
        if DEFECT or step == args.steps - 1:
            curve.compute()  # DEFECT
        times.append(time.perf_counter_ns() - before)
    report(times, curve.value)


main()
