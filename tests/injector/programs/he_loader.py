"""Training with two loader workers that keep up easily."""
import argparse, json, statistics, time
import torch
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch", type=int, default=160)
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

class Rows(Dataset):
    def __init__(self, count):
        self.table, self.count = torch.randn(1000, 200), count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.table[index % 1000], index % 5


def main():
    loader = DataLoader(Rows(args.batch * args.steps), batch_size=args.batch, num_workers=2)
    model = torch.nn.Sequential(torch.nn.Linear(200, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    times, total = Times(), 0.0
    before = time.perf_counter_ns()
    for rows, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        now = time.perf_counter_ns()
        times.append(now - before)
        before = now
    report(times, total)


if __name__ == "__main__":
    main()
