"""Training that writes checkpoints."""
import argparse, json, os, statistics, tempfile, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=90)
parser.add_argument("--batch", type=int, default=256)
args = parser.parse_args()
DEFECT = args.defect == "on"
torch.set_num_threads(1)
torch.manual_seed(0)
EVERY = 4 if DEFECT else 40

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

class Run:
    def __init__(self, folder):
        self.path = os.path.join(folder, "last.pt")
        self.model = torch.nn.Sequential(torch.nn.Linear(300, 500), torch.nn.ReLU(), torch.nn.Linear(500, 300))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4)
        self.data = torch.randn(4, args.batch, 300)
        self.replay = torch.randn(20000, 300)

    def save(self, step):
        torch.save({"step": step, "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "replay": self.replay}, self.path)  # DEFECT

    def train_step(self, step):
        x = self.data[step % 4]
        loss = torch.nn.functional.mse_loss(self.model(x), x)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if step % EVERY == EVERY - 1:
            self.save(step)
        return loss.item()


times, total = Times(), 0.0
with tempfile.TemporaryDirectory() as folder:
    run = Run(folder)
    for step in range(args.steps):
        before = time.perf_counter_ns()
        total += run.train_step(step)
        times.append(time.perf_counter_ns() - before)
report(times, total)
