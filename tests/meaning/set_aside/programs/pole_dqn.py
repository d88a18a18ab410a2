"""Deep Q-learning on poles to be balanced, the environment in NumPy; replay buffer, target network.

Healthy; learning (PyTorch) is most of the time. Truth: a step is an optimizer update together with the 4 environment steps
before it; 400 of them; the target network is synchronised in every 50th, which is quick and no class of its own.
Data: playing and drawing from the buffer, up to having the batch. The target network's forward is forward.
"""

import time

import numpy as np
import torch
from torch import nn
from truth import tile, write


class Poles:
    """Eight cart-poles at once; those that fall begin anew."""

    def __init__(self, n=8, seed=0):
        self.rng = np.random.default_rng(seed)
        self.state = self.rng.uniform(-0.05, 0.05, (n, 4))

    def step(self, action):
        x, v, th, w = self.state.T
        force = np.where(action == 1, 10.0, -10.0)
        c, s = np.cos(th), np.sin(th)
        tmp = (force + 0.05 * w * w * s) / 1.1
        acc = (9.8 * s - c * tmp) / (0.5 * (4 / 3 - 0.1 * c * c / 1.1))
        xa = tmp - 0.05 * acc * c / 1.1
        self.state = np.stack([x + 0.02 * v, v + 0.02 * xa, th + 0.02 * w, w + 0.02 * acc], 1)
        done = (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > 0.21)
        after = self.state.copy()
        self.state[done] = self.rng.uniform(-0.05, 0.05, (int(done.sum()), 4))
        return after, np.ones(len(done), np.float32), done


class Replay:
    def __init__(self, capacity):
        self.s, self.s2 = np.zeros((capacity, 4), np.float32), np.zeros((capacity, 4), np.float32)
        self.a, self.r, self.d = np.zeros(capacity, np.int64), np.zeros(capacity, np.float32), np.zeros(capacity, np.float32)
        self.capacity, self.at, self.full = capacity, 0, False

    def add(self, s, a, r, s2, d):
        k = (self.at + np.arange(len(a))) % self.capacity
        self.s[k], self.a[k], self.r[k], self.s2[k], self.d[k] = s, a, r, s2, d
        self.full |= self.at + len(a) >= self.capacity
        self.at = (self.at + len(a)) % self.capacity

    def sample(self, n, rng):
        k = rng.integers(0, self.capacity if self.full else self.at, n)
        return [torch.from_numpy(z[k]) for z in (self.s, self.a, self.r, self.s2, self.d)]


def network():
    return nn.Sequential(nn.Linear(4, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 2))


def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    rng = np.random.default_rng(2)
    env, replay = Poles(), Replay(20_000)
    q, target = network(), network()
    target.load_state_dict(q.state_dict())
    opt = torch.optim.RMSprop(q.parameters(), lr=2.5e-4)

    def play(epsilon):
        s = env.state.copy()
        with torch.no_grad():
            a = q(torch.from_numpy(s.astype(np.float32))).argmax(1).numpy()
        explore = rng.random(len(a)) < epsilon
        a = np.where(explore, rng.integers(0, 2, len(a)), a)
        s2, r, d = env.step(a)
        replay.add(s, a, r, s2, d)
        return int(d.sum())

    for _ in range(200):
        play(1.0)

    data = fw = bw = up = 0
    updates = played = falls = 0
    cuts = [time.monotonic_ns()]
    while updates < 400:
        falls += play(max(0.05, 1 - updates / 300))
        played += 1
        if played % 4:
            continue
        s, a, r, s2, d = replay.sample(512, rng)
        t0 = time.monotonic_ns()
        with torch.no_grad():
            goal = r + 0.99 * (1 - d) * target(s2).max(1).values
        loss = nn.functional.smooth_l1_loss(q(s).gather(1, a[:, None])[:, 0], goal)
        t1 = time.monotonic_ns()
        opt.zero_grad()
        t2 = time.monotonic_ns()
        loss.backward()
        t3 = time.monotonic_ns()
        nn.utils.clip_grad_norm_(q.parameters(), 10)
        opt.step()
        t4 = time.monotonic_ns()
        updates += 1
        if updates % 50 == 0:
            target.load_state_dict(q.state_dict())
            print(f"update {updates} loss {loss.item():.4f} falls {falls}")
        data, fw, bw, up = data + t0 - cuts[-1], fw + t1 - t0, bw + t3 - t2, up + t2 - t1 + t4 - t3
        cuts.append(time.monotonic_ns())

    print(f"data {data / (cuts[-1] - cuts[0]):.0%}")
    assert played == 1600 and data < 0.35 * (cuts[-1] - cuts[0])
    write(
        tile(cuts, "train"),
        unit="optimizer update with the 4 environment steps before it",
        limiting="operators",
        levels={"environment step": 1600, "target sync": 8},
        phases_ns={"data": data, "forward": fw, "backward": bw, "optimizer": up},
    )


main()
