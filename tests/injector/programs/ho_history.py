"""Online learning with a report of the average loss so far."""
import argparse, json, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=120)
parser.add_argument("--batch", type=int, default=4000)
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

class Monitor:
    def __init__(self):
        self.losses, self.total, self.count = [], 0.0, 0

    def average(self, losses):
        if DEFECT:
            self.losses.extend(losses.tolist())
            return sum(value for value in self.losses) / len(self.losses)  # DEFECT
        self.total += sum(losses.tolist())
        self.count += len(losses)
        return self.total / self.count


monitor = Monitor()
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(4, args.batch, 64)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    losses = (model(x[step % 4])[:, 0] - x[step % 4, :, 0]).square()
    optimizer.zero_grad()
    losses.mean().backward()
    optimizer.step()
    total += monitor.average(losses.detach())
    times.append(time.perf_counter_ns() - before)
report(times, total)
