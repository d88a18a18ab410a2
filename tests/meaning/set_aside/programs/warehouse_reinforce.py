"""REINFORCE on a pure-Python warehouse grid: an episode is played, then the policy is updated once.

Truth: 120 updates, limited by python (playing the episodes; one may call it data, because that makes the batch). `Warehouse.step`
deep-copies its whole map of shelves for an undo that nobody uses; the measured time of the copies is the gain.
"""

import copy
import random
import time
from dataclasses import dataclass, field

import torch
from torch import nn
from truth import problem, tile, write

MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))
copying = 0


@dataclass
class Shelf:
    row: int
    col: int
    load: float
    labels: list[str] = field(default_factory=list)


class Warehouse:
    def __init__(self, size=10, seed=0):
        self.random = random.Random(seed)
        self.size = size
        self.shelves = {
            (r, c): Shelf(r, c, self.random.random(), ["a", "b"])
            for r in range(size)
            for c in range(size)
            if (r * 3 + c) % 4 == 0
        }
        self.undo = None

    def reset(self):
        self.robot = (1, 1)
        self.goal = (self.size - 2, self.size - 2)
        return self.observe()

    def observe(self):
        r, c = self.robot
        near = [float((r + dr, c + dc) in self.shelves) for dr, dc in MOVES]
        return [r / self.size, c / self.size, self.goal[0] / self.size, self.goal[1] / self.size, *near]

    def step(self, action):
        global copying
        begin = time.monotonic_ns()
        self.undo = copy.deepcopy(self.shelves)
        copying += time.monotonic_ns() - begin
        r, c = self.robot
        dr, dc = MOVES[action]
        target = (min(max(r + dr, 0), self.size - 1), min(max(c + dc, 0), self.size - 1))
        bumped = target in self.shelves
        if not bumped:
            self.robot = target
        distance = abs(self.robot[0] - self.goal[0]) + abs(self.robot[1] - self.goal[1])
        return self.observe(), -0.1 * distance - 0.5 * bumped


def play(env, policy, length=48):
    observations, actions, rewards = [], [], []
    seen = env.reset()
    for _ in range(length):
        with torch.no_grad():
            logits = policy(torch.tensor(seen))
        action = torch.distributions.Categorical(logits=logits, validate_args=False).sample().item()
        observations.append(seen)
        actions.append(action)
        seen, reward = env.step(action)
        rewards.append(reward)
    returns, running = [], 0.0
    for reward in reversed(rewards):
        running = reward + 0.97 * running
        returns.insert(0, running)
    return torch.tensor(observations), torch.tensor(actions), torch.tensor(returns)


torch.manual_seed(0)
torch.set_num_threads(1)
env = Warehouse()
policy = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
ns = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0}
cuts = [time.monotonic_ns()]
for episode in range(120):
    observations, actions, returns = play(env, policy)
    t0 = time.monotonic_ns()
    log_probs = torch.log_softmax(policy(observations), -1)
    chosen = log_probs.gather(1, actions[:, None]).squeeze(1)
    advantage = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = -(chosen * advantage).mean()
    t1 = time.monotonic_ns()
    optimizer.zero_grad()
    t2 = time.monotonic_ns()
    loss.backward()
    t3 = time.monotonic_ns()
    optimizer.step()
    t4 = time.monotonic_ns()
    if episode % 30 == 0:
        print(f"episode {episode}: return {returns[0].item():.2f}, loss {loss.item():.3f}")
    ns["data"] += t0 - cuts[-1]
    ns["forward"] += t1 - t0
    ns["backward"] += t3 - t2
    ns["optimizer"] += t2 - t1 + t4 - t3
    cuts.append(time.monotonic_ns())

write(
    tile(cuts),
    unit="optimizer update",
    limiting="python",
    limiting_also=["data"],
    phases_ns=ns,
    problem=problem(
        "the environment deep-copies its shelves in every step",
        "warehouse_reinforce.py:Warehouse.step",
        "python",
        wasted_ns=copying,
    ),
)
