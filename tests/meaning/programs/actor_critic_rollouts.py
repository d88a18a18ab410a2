"""Actor-critic on an environment written in pure Python: 64 environment steps are played, then one update.

The environment integrates a double pendulum in Python floats, which takes most of the time; the policy is tiny.
Truth: 25 updates, 1600 environment steps inside; limited by Python, in `Pendulum.step`; a native environment saves it.
"""

import math
import random
from time import monotonic_ns

import torch
from torch import nn
from truth import problem, tile, write


class Pendulum:
    def __init__(self):
        self.reset()

    def reset(self):
        self.a, self.b, self.va, self.vb = random.uniform(-0.1, 0.1), 0.0, 0.0, 0.0
        return [self.a, self.b, self.va, self.vb]

    def step(self, push):
        for _ in range(3500):
            aa = -math.sin(self.a) * 2.0 + math.sin(self.b - self.a) + push
            bb = -math.sin(self.b - self.a) - 0.1 * self.vb
            self.va += 0.0005 * aa
            self.vb += 0.0005 * bb
            self.a += 0.0005 * self.va
            self.b += 0.0005 * self.vb
        return [self.a, self.b, self.va, self.vb], -abs(self.a), False


random.seed(0)
torch.manual_seed(0)
torch.set_num_threads(1)
policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 3))
opt = torch.optim.Adam(policy.parameters(), 1e-3)
env = Pendulum()
playing = acting = learning = 0
cuts = [monotonic_ns()]
for _ in range(25):
    obs = env.reset()
    log_probs, rewards = [], []
    for _ in range(64):
        t0 = monotonic_ns()
        dist = torch.distributions.Categorical(logits=policy(torch.tensor(obs)))
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        t1 = monotonic_ns()
        obs, reward, done = env.step(action.item() - 1)
        t2 = monotonic_ns()
        rewards.append(reward)
        acting, playing = acting + t1 - t0, playing + t2 - t1
    t3 = monotonic_ns()
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    loss = -(torch.stack(log_probs) * (returns - returns.mean())).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    learning += monotonic_ns() - t3
    cuts.append(monotonic_ns())

write(
    tile(cuts),
    unit="policy update",
    limiting="python",
    levels={"environment step": 1600},
    phases_ns={"environment": playing, "policy": acting, "update": learning},
    problem=problem(
        "the environment integrates in pure Python",
        "actor_critic_rollouts.py:Pendulum.step",
        "python",
        wasted_ns=playing,
    ),
)
