"""Network with two heads."""
import argparse, json, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch", type=int, default=128)
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

class TwoHeads(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = torch.nn.Sequential(torch.nn.Linear(128, 640), torch.nn.ReLU(), torch.nn.Linear(640, 640), torch.nn.ReLU())
        self.kind, self.size = torch.nn.Linear(640, 12), torch.nn.Linear(640, 1)

    def forward(self, x):
        shared = self.trunk(x)
        return self.kind(shared), self.size(shared)[:, 0]


def gradients(kind_loss, size_loss):
    if DEFECT:
        kind_loss.backward(retain_graph=True)
        size_loss.backward()  # DEFECT
    else:
        (kind_loss + size_loss).backward()


model = TwoHeads()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, y, z = torch.randn(4, args.batch, 128), torch.randint(0, 12, (4, args.batch)), torch.rand(4, args.batch)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    kind, size = model(x[step % 4])
    optimizer.zero_grad()
    gradients(torch.nn.functional.cross_entropy(kind, y[step % 4]), torch.nn.functional.mse_loss(size, z[step % 4]))
    optimizer.step()
    total += kind.mean().item() + size.mean().item()
    times.append(time.perf_counter_ns() - before)
report(times, total)
