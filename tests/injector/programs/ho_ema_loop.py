"""Many small expert networks with averaged weights."""
import argparse, json, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--experts", type=int, default=300)
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

class Average:
    def __init__(self, parameters, decay=0.99):
        self.parameters, self.decay = list(parameters), decay
        self.kept = [p.detach().clone() for p in self.parameters]

    @torch.no_grad()
    def update(self):
        if DEFECT:
            for kept, parameter in zip(self.kept, self.parameters):
                kept.copy_(kept * self.decay + parameter.detach() * (1 - self.decay))  # DEFECT
        else:
            torch._foreach_lerp_(self.kept, self.parameters, 1 - self.decay)


experts = torch.nn.ModuleList(torch.nn.Linear(24, 24) for _ in range(args.experts))
average = Average(experts.parameters())
optimizer = torch.optim.SGD(experts.parameters(), lr=0.05, foreach=True)
data = torch.randn(args.experts, 16, 24)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    weight, bias = torch.stack([e.weight for e in experts]), torch.stack([e.bias for e in experts])
    out = torch.baddbmm(bias[:, None], data, weight.transpose(1, 2))
    loss = (out - data).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update()
    total += loss.item()
    times.append(time.perf_counter_ns() - before)
report(times, total + float(average.kept[0].sum()))
