"""Convolutional classifier; validation every 25 steps."""
import argparse, json, statistics, time
import torch
import torch.nn.functional as F

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=150)
parser.add_argument("--batch", type=int, default=48)
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

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.Conv2d(16, 32, 3, padding=1)
        self.norm, self.out = torch.nn.BatchNorm2d(32), torch.nn.Linear(32 * 64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.a(x)), 2)
        x = F.max_pool2d(F.relu(self.norm(self.b(x))), 2)
        return self.out(x.flatten(1))


@torch.no_grad()
def validate(net, x, y):
    net.eval()
    hits = (net(x).argmax(1) == y).float().mean().item()
    net.train()
    return hits


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
x, y = torch.randn(6, args.batch, 3, 32, 32), torch.randint(0, 10, (6, args.batch))
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(net(x[step % 6]), y[step % 6])
    loss.backward()
    optimizer.step()
    total += loss.item()
    if step % 25 == 24:
        total += validate(net, x[0], y[0])
    times.append(time.perf_counter_ns() - before)
report(times, total)
