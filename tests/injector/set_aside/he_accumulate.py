"""Training with four micro batches per update and a learning-rate schedule."""
import argparse, json, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--micro", type=int, default=80)
args = parser.parse_args()
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

def main():
    model = torch.nn.Sequential(torch.nn.Linear(300, 512), torch.nn.SiLU(), torch.nn.Linear(512, 512), torch.nn.SiLU(), torch.nn.Linear(512, 30))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    x, y = torch.randn(8, args.micro, 300), torch.randint(0, 30, (8, args.micro))
    times, total = Times(), 0.0
    for step in range(args.steps):
        before = time.perf_counter_ns()
        optimizer.zero_grad()
        for part in range(4):
            number = (4 * step + part) % 8
            loss = torch.nn.functional.cross_entropy(model(x[number]), y[number]) / 4
            loss.backward()
            total += loss.item()
        optimizer.step()
        schedule.step()
        times.append(time.perf_counter_ns() - before)
    report(times, total)


main()
