"""Training that keeps the best state so far in memory."""
import argparse, copy, json, pickle, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=80)
parser.add_argument("--batch", type=int, default=400)
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

class Best:
    def __init__(self):
        self.loss, self.packed = float("inf"), b""

    def keep_best(self, loss, model, optimizer):
        if DEFECT:
            packed = pickle.dumps(copy.deepcopy({"model": model.state_dict(), "optimizer": optimizer.state_dict()}))  # DEFECT
        if loss < self.loss - 0.02:
            self.loss = loss
            self.packed = packed if DEFECT else pickle.dumps({"model": model.state_dict(), "optimizer": optimizer.state_dict()})


model = torch.nn.Sequential(torch.nn.Linear(512, 700), torch.nn.ReLU(), torch.nn.Linear(700, 512))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
data = torch.randn(5, args.batch, 512)
best = Best()
times = Times()
for step in range(args.steps):
    before = time.perf_counter_ns()
    x = data[step % 5]
    loss = torch.nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    best.keep_best(loss.item(), model, optimizer)
    times.append(time.perf_counter_ns() - before)
report(times, best.loss)
