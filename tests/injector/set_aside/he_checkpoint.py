"""Training with one small checkpoint at the end of each 40 steps."""
import argparse, json, os, statistics, tempfile, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch", type=int, default=1200)
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

model = torch.nn.Sequential(torch.nn.Linear(128, 400), torch.nn.Tanh(), torch.nn.Linear(400, 400), torch.nn.Tanh(), torch.nn.Linear(400, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(4, args.batch, 128), torch.randn(4, args.batch, 8)
times, total = Times(), 0.0
with tempfile.TemporaryDirectory() as folder:
    for step in range(args.steps):
        before = time.perf_counter_ns()
        loss = torch.nn.functional.smooth_l1_loss(model(x[step % 4]), y[step % 4])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        if step % 40 == 39:
            torch.save(model.state_dict(), os.path.join(folder, "model.pt"))
        times.append(time.perf_counter_ns() - before)
report(times, total)
