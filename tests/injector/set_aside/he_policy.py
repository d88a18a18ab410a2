"""Policy gradient on many pendulums at once."""
import argparse, json, statistics, time
import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=140)
parser.add_argument("--envs", type=int, default=256)
parser.add_argument("--horizon", type=int, default=24)
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

class Pendulums:
    def __init__(self, count):
        self.angle, self.speed = torch.rand(count) * 6, torch.zeros(count)

    def observe(self):
        return torch.stack([self.angle.cos(), self.angle.sin(), self.speed], 1)

    def act(self, push):
        self.speed = (self.speed + 0.05 * (9 * self.angle.sin() + 2 * push)).clamp(-8, 8)
        self.angle = self.angle + 0.05 * self.speed
        return -(1 - self.angle.cos()) - 0.01 * self.speed ** 2


policy = torch.nn.Sequential(torch.nn.Linear(3, 128), torch.nn.Tanh(), torch.nn.Linear(128, 128), torch.nn.Tanh(), torch.nn.Linear(128, 1))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
world = Pendulums(args.envs)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    logs, rewards = [], []
    for _ in range(args.horizon):
        mean = policy(world.observe())[:, 0]
        push = (mean + 0.5 * torch.randn_like(mean)).detach()
        logs.append(-2 * (push - mean) ** 2)
        rewards.append(world.act(push))
    returns = torch.stack(rewards).flip(0).cumsum(0).flip(0)
    loss = -(torch.stack(logs) * (returns - returns.mean(1, keepdim=True))).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()
    times.append(time.perf_counter_ns() - before)
report(times, total)
