"""Classifier training that counts correct answers in each step."""
import argparse, json, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch", type=int, default=1500)
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

def count_correct(logits, labels):
    best = logits.argmax(1)
    if not DEFECT:
        return (best == labels).sum().item()
    correct = 0
    for guess, label in zip(best, labels):
        if guess.item() == label.item():  # DEFECT
            correct += 1
    return correct


def main():
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.ReLU(), torch.nn.Linear(128, 20))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(4, args.batch, 64), torch.randint(0, 20, (4, args.batch))
    times, total = Times(), 0.0
    for step in range(args.steps):
        before = time.perf_counter_ns()
        logits = model(x[step % 4])
        loss = torch.nn.functional.cross_entropy(logits, y[step % 4])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += count_correct(logits, y[step % 4])
        times.append(time.perf_counter_ns() - before)
    report(times, total)


main()
