"""Deep Q-learning of an elevator with prioritised replay; the building is plain Python, priorities lie in the transitions.

Truth: 700 updates, each after two environment steps, limited by data (playing and sampling, most of all sampling): `Replay.sample` collects
the priorities of all 16,000 transitions into an array for each batch. With the priorities in an array, as measured after the
loop, it would be much less; the difference is the gain. One may say python.
"""

import random
import time
from collections import deque

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from truth import problem, tile, write

FLOORS = 8


class Building:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.reset()

    def reset(self):
        self.floor, self.riders, self.clock = 0, [], 0
        self.waiting = [0] * FLOORS
        return self.state()

    def state(self):
        here = [float(i == self.floor) for i in range(FLOORS)]
        goals = [min(3, self.riders.count(i)) / 3 for i in range(FLOORS)]
        return np.array(here + goals + [min(5, w) / 5 for w in self.waiting], dtype=np.float32)

    def step(self, action):
        self.clock += 1
        if self.random.random() < 0.3:
            self.waiting[self.random.randrange(FLOORS)] += 1
        reward = -0.02 * (sum(self.waiting) + len(self.riders))
        if action == 0:
            reward += self.riders.count(self.floor)
            self.riders = [goal for goal in self.riders if goal != self.floor]
            while self.waiting[self.floor] and len(self.riders) < 8:
                self.waiting[self.floor] -= 1
                self.riders.append(self.random.randrange(FLOORS))
        else:
            self.floor = max(0, min(FLOORS - 1, self.floor + (1 if action == 1 else -1)))
        return self.state(), reward, self.clock >= 200


class Transition:
    __slots__ = ("action", "after", "before", "done", "priority", "reward")

    def __init__(self, before, action, reward, after, done, priority):
        self.before, self.action, self.reward = before, action, reward
        self.after, self.done, self.priority = after, done, priority


class Replay:
    def __init__(self, capacity, seed=0):
        self.memory = deque(maxlen=capacity)
        self.rng = np.random.default_rng(seed)
        self.collecting = 0

    def push(self, *transition):
        self.memory.append(Transition(*transition, priority=1.0))

    def sample(self, size):
        begin = time.monotonic_ns()
        priorities = np.array([each.priority for each in self.memory])
        self.collecting += time.monotonic_ns() - begin
        chances = priorities**0.6
        picks = self.rng.choice(len(self.memory), size, p=chances / chances.sum())
        chosen = [self.memory[i] for i in picks]
        return chosen, (
            torch.from_numpy(np.stack([each.before for each in chosen])),
            torch.tensor([each.action for each in chosen]),
            torch.tensor([each.reward for each in chosen]),
            torch.from_numpy(np.stack([each.after for each in chosen])),
            torch.tensor([float(each.done) for each in chosen]),
        )


def make_network():
    return nn.Sequential(nn.Linear(3 * FLOORS, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 3))


class Agent:
    def __init__(self, gamma=0.98):
        self.online, self.target = make_network(), make_network()
        self.target.load_state_dict(self.online.state_dict())
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=5e-4)
        self.gamma = gamma
        self.spent = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0}

    @torch.no_grad()
    def act(self, state, epsilon):
        if random.random() < epsilon:
            return random.randrange(3)
        return int(self.online(torch.from_numpy(state)).argmax())

    def learn(self, replay, mark):
        chosen, (before, action, reward, after, done) = replay.sample(64)
        t0 = time.monotonic_ns()
        with torch.no_grad():
            best = self.online(after).argmax(1, keepdim=True)
            goal = reward + self.gamma * (1 - done) * self.target(after).gather(1, best).squeeze(1)
        value = self.online(before).gather(1, action.unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss(value, goal)
        t1 = time.monotonic_ns()
        self.optimizer.zero_grad()
        t2 = time.monotonic_ns()
        loss.backward()
        t3 = time.monotonic_ns()
        self.optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(self.target.parameters(), self.online.parameters(), strict=True):
                slow.lerp_(fast, 0.01)
        t4 = time.monotonic_ns()
        for each, error in zip(chosen, (goal - value).abs().tolist(), strict=True):
            each.priority = error + 1e-3
        self.spent["data"] += t0 - mark
        self.spent["forward"] += t1 - t0
        self.spent["backward"] += t3 - t2
        self.spent["optimizer"] += t2 - t1 + t4 - t3


def main():
    torch.set_num_threads(1)
    torch.manual_seed(4)
    random.seed(4)
    building, agent, replay = Building(4), Agent(), Replay(16_000)

    state = building.reset()
    while len(replay.memory) < 16_000:
        action = random.randrange(3)
        following, reward, done = building.step(action)
        replay.push(state, action, reward, following, done)
        state = building.reset() if done else following

    score, scores = 0.0, []
    state = building.reset()
    cuts = [time.monotonic_ns()]
    for t in range(1, 1401):
        action = agent.act(state, epsilon=max(0.05, 1 - t / 1000))
        following, reward, done = building.step(action)
        replay.push(state, action, reward, following, done)
        score += reward
        state = following
        if done:
            scores.append(score)
            score, state = 0.0, building.reset()
        if t % 2 == 0:
            agent.learn(replay, cuts[-1])
            cuts.append(time.monotonic_ns())
    print(f"{len(scores)} episodes, {scores[0]:.1f} -> {scores[-1]:.1f}")

    kept = np.array([each.priority for each in replay.memory])
    begin = time.monotonic_ns()
    for k in range(100):
        kept[k : k + 64] = 1.0
        kept.copy()
    quick = (time.monotonic_ns() - begin) // 100
    write(
        tile(cuts),
        unit="optimizer update",
        levels={"environment step": 1400, "episode": 7},
        limiting="data",
        limiting_also=["python"],
        phases_ns=agent.spent,
        problem=problem(
            "priorities of all transitions are collected into an array for each batch",
            "elevator_dqn.py:Replay.sample",
            "data",
            wasted_ns=replay.collecting - quick * 700,
        ),
    )


if __name__ == "__main__":
    main()
