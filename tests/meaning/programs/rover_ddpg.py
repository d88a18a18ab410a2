"""Teaches a rover to drive to beacons among rocks: DDPG with a replay buffer of tensors.

Planted: `Replay.push` grows each of its tensors by `torch.cat` and cuts off the oldest row, so that the whole buffer is
copied for every move. Truth: 500 moves, each with one update of critic and actor (two optimizers); limited by data (the
copies and the playing; they are native: one may say operators). Writing a row in place is measured after the loop; the
difference is the gain.
"""

import time

import torch
import torch.nn.functional as F
from torch import nn
from truth import problem, tile, write

RAYS, ACTIONS, CAPACITY = 56, 2, 50_000


class Yard:
    def __init__(self, rocks=24):
        self.rocks = torch.rand(rocks, 2) * 10
        angles = torch.arange(RAYS) * (2 * torch.pi / RAYS)
        self.rays = torch.stack([angles.cos(), angles.sin()])

    def reset(self):
        self.place, self.speed, self.beacon, self.moves = torch.rand(2) * 10, torch.zeros(2), torch.rand(2) * 10, 0
        return self.look()

    def look(self):
        along = (self.rocks - self.place) @ self.rays
        off = (self.rocks - self.place).norm(dim=1, keepdim=True) ** 2 - along**2
        seen = torch.where((along > 0) & (off < 0.16), along, 10.0).amin(0)
        return torch.cat([seen / 10, self.speed, (self.beacon - self.place) / 10, self.place / 10])

    def move(self, push):
        self.moves += 1
        self.speed = 0.9 * self.speed + 0.1 * push
        self.place = (self.place + self.speed).clamp(0, 10)
        gap = (self.beacon - self.place).norm()
        bumped = ((self.rocks - self.place).norm(dim=1) < 0.4).any()
        return self.look(), -gap / 10 - bumped.float(), bool(gap < 0.5) or self.moves >= 120


class Replay:
    def __init__(self, capacity):
        self.capacity, self.pushing = capacity, 0
        self.columns = [torch.empty(0, *size) for size in ((RAYS + 6,), (ACTIONS,), (), (RAYS + 6,), ())]

    def push(self, *rows):
        begin = time.monotonic_ns()
        for k, row in enumerate(rows):
            self.columns[k] = torch.cat([self.columns[k], row])[-self.capacity :]
        self.pushing += time.monotonic_ns() - begin

    def sample(self, size):
        picks = torch.randint(len(self.columns[0]), (size,))
        return [column[picks] for column in self.columns]


def tower(inputs, outputs, *last):
    hidden = nn.Linear(inputs, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()
    return nn.Sequential(*hidden, nn.Linear(128, outputs), *last)


class Agent:
    def __init__(self):
        make = {"actor": (RAYS + 6, ACTIONS, nn.Tanh()), "critic": (RAYS + 8, 1)}
        self.net = nn.ModuleDict({name: tower(*sizes) for name, sizes in make.items()})
        self.slow = nn.ModuleDict({name: tower(*sizes) for name, sizes in make.items()})
        self.slow.load_state_dict(self.net.state_dict())
        self.optimizers = {name: torch.optim.Adam(self.net[name].parameters(), lr=1e-3) for name in make}
        self.spent = dict.fromkeys(("data", "forward", "backward", "optimizer"), 0)

    def critic_loss(self, before, action, reward, after, over):
        with torch.no_grad():
            worth = self.slow["critic"](torch.cat([after, self.slow["actor"](after)], 1)).squeeze(1)
        goal = reward + 0.98 * (1 - over) * worth
        return F.mse_loss(self.net["critic"](torch.cat([before, action], 1)).squeeze(1), goal)

    def actor_loss(self, before, *_):
        return -self.net["critic"](torch.cat([before, self.net["actor"](before)], 1)).mean()

    def learn(self, batch):
        for name, make_loss in (("critic", self.critic_loss), ("actor", self.actor_loss)):
            t0 = time.monotonic_ns()
            loss = make_loss(*batch)
            t1 = time.monotonic_ns()
            self.optimizers[name].zero_grad()
            t2 = time.monotonic_ns()
            loss.backward()
            t3 = time.monotonic_ns()
            self.optimizers[name].step()
            self.spent["forward"] += t1 - t0
            self.spent["backward"] += t3 - t2
            self.spent["optimizer"] += t2 - t1 + time.monotonic_ns() - t3
        begin = time.monotonic_ns()
        with torch.no_grad():
            for slow, fast in zip(self.slow.parameters(), self.net.parameters(), strict=True):
                slow.lerp_(fast, 0.005)
        self.spent["optimizer"] += time.monotonic_ns() - begin


def main(updates=500):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    yard, agent, replay = Yard(), Agent(), Replay(CAPACITY)
    state, past, driven = yard.reset(), [], 0
    for _ in range(1500):  # drive at random; the buffer is filled with copies of that
        action = torch.rand(ACTIONS) * 2 - 1
        after, reward, over = yard.move(action)
        past.append((state, action, reward, after, torch.tensor(float(over))))
        state = yard.reset() if over else after
    replay.push(*[torch.cat([torch.stack(column)] * 34)[:CAPACITY] for column in zip(*past, strict=True)])
    replay.pushing = 0

    cuts = [time.monotonic_ns()]
    for _ in range(updates):
        with torch.no_grad():
            action = (agent.net["actor"](state) + 0.1 * torch.randn(ACTIONS)).clamp(-1, 1)
        after, reward, over = yard.move(action)
        replay.push(state[None], action[None], reward[None], after[None], torch.tensor([float(over)]))
        state, driven = (yard.reset(), driven + 1) if over else (after, driven)
        batch = replay.sample(128)
        agent.spent["data"] += time.monotonic_ns() - cuts[-1]
        agent.learn(batch)
        cuts.append(time.monotonic_ns())
    print(f"{driven} drives, reward {replay.columns[2][-updates:].mean():.3f}")

    tables = [column.clone() for column in replay.columns]
    begin = time.monotonic_ns()
    for k in range(updates):
        for table in tables:
            table[k] = table[k + 1]
    wasted = replay.pushing - (time.monotonic_ns() - begin)
    found = problem("the whole buffer is copied for each move", "rover_ddpg.py:Replay.push", "data", wasted_ns=wasted)
    fields = {"limiting": "data", "limiting_also": ["operators"], "phases_ns": agent.spent, "problem": found}
    write(tile(cuts), unit="move with an update of critic and actor", **fields)


if __name__ == "__main__":
    main()
