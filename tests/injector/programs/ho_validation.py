"""Training with validation in between."""
import argparse, json, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--validation", type=int, default=1500)
args = parser.parse_args()
DEFECT = args.defect == "on"
torch.set_num_threads(1)
torch.manual_seed(0)
EVERY = 2 if DEFECT else 20

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

class Experiment:
    def __init__(self):
        self.model = torch.nn.Sequential(torch.nn.Linear(200, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 5))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4)
        self.x, self.y = torch.randn(4, args.batch, 200), torch.randint(0, 5, (4, args.batch))
        self.held_x, self.held_y = torch.randn(args.validation, 200), torch.randint(0, 5, (args.validation,))
        self.held_loss = 0.0

    def train(self, step):
        self.model.train()
        loss = torch.nn.functional.cross_entropy(self.model(self.x[step % 4]), self.y[step % 4])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        self.held_loss = torch.nn.functional.cross_entropy(self.model(self.held_x), self.held_y).item()


experiment = Experiment()
times = Times()
for step in range(args.steps):
    before = time.perf_counter_ns()
    experiment.train(step)
    if step % EVERY == EVERY - 1:
        experiment.validate()  # DEFECT
    times.append(time.perf_counter_ns() - before)
report(times, experiment.held_loss)
