"""Few-shot training: short epochs over a small data set."""
import argparse, json, statistics, time
import torch
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=140)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--per_epoch", type=int, default=10)
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

def make_loader():
    count = args.batch * args.per_epoch
    data = TensorDataset(torch.rand(count, 256), torch.arange(count) % 5)
    return DataLoader(data, batch_size=args.batch, num_workers=2, persistent_workers=not DEFECT)  # DEFECT


def main():
    loader = make_loader()
    model = torch.nn.Sequential(torch.nn.Linear(256, 800), torch.nn.ReLU(), torch.nn.Linear(800, 500), torch.nn.ReLU(),
                                torch.nn.Linear(500, 5))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    times, total = Times(), 0.0
    before = time.perf_counter_ns()
    for epoch in range(args.steps // args.per_epoch):
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
            now = time.perf_counter_ns()
            times.append(now - before)
            before = now
    report(times, total)


if __name__ == "__main__":
    main()
