"""Messages along the edges of a graph, trained to tell its communities."""
import argparse, json, statistics, time
import torch
from torch import nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=130)
parser.add_argument("--nodes", type=int, default=2500)
parser.add_argument("--edges", type=int, default=12000)
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(0)
COMMUNITIES = 5

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

class Layer(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.own, self.near = nn.Linear(before, after), nn.Linear(before, after, bias=False)

    def forward(self, x, source, target, share):
        sums = torch.zeros_like(x).index_add(0, target, x[source])
        return self.own(x) + self.near(sums * share)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Layer(32, 64), Layer(64, COMMUNITIES)

    def forward(self, x, *graph):
        return self.second(self.first(x, *graph).relu(), *graph)


source = torch.randint(0, args.nodes, (args.edges,))
target = (source + COMMUNITIES * torch.randint(1, 9, (args.edges,))) % args.nodes
labels = torch.arange(args.nodes) % COMMUNITIES
share = 1 / torch.bincount(target, minlength=args.nodes).clamp(min=1)[:, None]
features = torch.randn(args.nodes, 32) + 0.3 * torch.randn(COMMUNITIES, 32)[labels]
model = Network()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    loss = nn.functional.cross_entropy(model(features, source, target, share), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
    times.append(time.perf_counter_ns() - before)
report(times, total)
