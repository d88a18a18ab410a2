"""Learns to work the gates of a dam by advantage actor-critic: 96 reservoirs are simulated at once with NumPy, 20
days are played, then one update is made. Rollouts come from a generator that is never exhausted; a deque keeps the
last returns. Healthy, limited by operators (the recurrent policy and its gradients). Truth: 90 updates with 1800 days
inside; after each 30th the greedy policy is tried on other reservoirs, which stands beside. Playing is data, with the
policy's calls in it.
"""

import collections
import math
import time

import numpy as np
import torch
from torch import nn
from truth import write

DAMS, DAYS, UPDATES, SIGHTS, GATES = 96, 20, 90, 14, 5


class Reservoirs:
    def __init__(self, count, seed):
        self.dice, self.count = np.random.default_rng(seed), count
        self.level = self.dice.uniform(0.4, 0.8, count)
        self.day = self.dice.integers(0, 365, count)
        self.rain = np.zeros((count, SIGHTS - 4))

    def sight(self):
        season = 2 * math.pi * self.day / 365
        columns = self.level, np.sin(season), np.cos(season), self.level > 0.9
        return torch.from_numpy(np.column_stack([*columns, self.rain]).astype(np.float32))

    def release(self, gates):
        self.rain = np.roll(self.rain, 1, axis=1)
        wet = self.dice.random(self.count) < 0.3 + 0.15 * np.sin(2 * math.pi * self.day / 365)
        self.rain[:, 0] = wet * self.dice.gamma(1.5, 0.05, self.count)
        flow = 0.03 * gates * np.sqrt(self.level.clip(0))
        filled = self.level + self.rain[:, 0] - flow
        self.level, self.day = filled.clip(0, 1), (self.day + 1) % 365
        return (flow * self.level - 3 * (filled - 1).clip(0) - (filled < 0.2) * 0.05).astype(np.float32)


class Keeper(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.width = width
        self.look = nn.Sequential(nn.Linear(SIGHTS, width), nn.Tanh())
        self.memory = nn.GRUCell(width, width)
        self.gates, self.worth = nn.Linear(width, GATES), nn.Linear(width, 1)

    def forward(self, sights, memory):
        memory = self.memory(self.look(sights), memory)
        return self.gates(memory), self.worth(memory).squeeze(-1), memory


def rollouts(keeper, dams):
    """Endless: what was seen, done and earned in DAYS days, and the memory before them."""
    memory = torch.zeros(dams.count, keeper.width)
    while True:
        first, seen, done, earned = memory, [], [], []
        with torch.no_grad():
            for _ in range(DAYS):
                seen.append(dams.sight())
                scores, _, memory = keeper(seen[-1], memory)
                done.append(torch.multinomial(scores.softmax(-1), 1).squeeze(-1))
                earned.append(torch.from_numpy(dams.release(done[-1].numpy())))
            worth = keeper(dams.sight(), memory)[1]
        returns = []
        for reward in reversed(earned):
            worth = reward + 0.97 * worth
            returns.append(worth)
        yield first, torch.stack(seen), torch.stack(done), torch.stack(returns[::-1])


def objective(keeper, memory, seen, done, returns):
    logits, worths = [], []
    for sights in seen:
        scores, worth, memory = keeper(sights, memory)
        logits.append(scores)
        worths.append(worth)
    chances = torch.distributions.Categorical(logits=torch.stack(logits))
    gap = returns - torch.stack(worths)
    gain = (gap.detach() - gap.detach().mean()) / (gap.detach().std() + 1e-6)
    return -(chances.log_prob(done) * gain).mean() + 0.5 * gap.square().mean() - 0.01 * chances.entropy().mean()


@torch.inference_mode()
def try_out(keeper, days=60):
    dams, memory, total = Reservoirs(48, seed=999), torch.zeros(48, keeper.width), 0.0
    for _ in range(days):
        scores, _, memory = keeper(dams.sight(), memory)
        total += float(dams.release(scores.argmax(-1).numpy()).mean())
    return total


def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    keeper = Keeper()
    optimizer = torch.optim.RMSprop(keeper.parameters(), lr=5e-4)
    recent = collections.deque(maxlen=10)
    spent = dict.fromkeys(("data", "forward", "backward", "optimizer", "evaluation"), 0)
    steps, begin = [], time.monotonic_ns()
    for update, (memory, seen, done, returns) in enumerate(rollouts(keeper, Reservoirs(DAMS, seed=2)), 1):
        t0 = time.monotonic_ns()
        loss = objective(keeper, memory, seen, done, returns)
        t1 = time.monotonic_ns()
        optimizer.zero_grad()
        t2 = time.monotonic_ns()
        loss.backward()
        t3 = time.monotonic_ns()
        nn.utils.clip_grad_norm_(keeper.parameters(), 0.5)
        optimizer.step()
        t4 = time.monotonic_ns()
        recent.append(returns[0].mean().item())
        parts = {"data": t0 - begin, "forward": t1 - t0, "optimizer": t2 - t1 + t4 - t3, "backward": t3 - t2}
        for name, ns in parts.items():
            spent[name] += ns
        end = time.monotonic_ns()
        steps.append((begin, end, "update"))
        begin = end
        if update % 30 == 0:
            print(f"{update}: return {sum(recent) / len(recent):.4f}, greedy {try_out(keeper):.4f}")
            end = time.monotonic_ns()
            spent["evaluation"] += end - begin
            steps.append((begin, end, "evaluation"))
            begin = end
        if update == UPDATES:
            break
    fields = {"levels": {"day": UPDATES * DAYS}, "phases_ns": spent, "beside": ["evaluation"]}
    write(steps, unit="optimizer update", limiting="operators", **fields)


if __name__ == "__main__":
    main()
