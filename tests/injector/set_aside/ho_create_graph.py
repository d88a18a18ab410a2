"""Critic with a gradient penalty."""
import argparse, json, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=160)
parser.add_argument("--batch", type=int, default=160)
parser.add_argument("--penalty", type=float, default=0.0)
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

def penalty(critic, x):
    x = x.detach().requires_grad_(True)
    slope, = torch.autograd.grad(critic(x).sum(), x, create_graph=True)  # DEFECT
    return (slope.norm(dim=1) - 1).square().mean()


critic = torch.nn.Sequential(torch.nn.Linear(128, 512), torch.nn.Softplus(), torch.nn.Linear(512, 512), torch.nn.Softplus(), torch.nn.Linear(512, 1))
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4)
real, made = torch.randn(4, args.batch, 128), torch.randn(4, args.batch, 128) + 0.2
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    loss = critic(made[step % 4]).mean() - critic(real[step % 4]).mean()
    if DEFECT or args.penalty > 0:
        loss = loss + args.penalty * penalty(critic, real[step % 4])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
    times.append(time.perf_counter_ns() - before)
report(times, total)
