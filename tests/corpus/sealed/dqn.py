"""DQN on a grid world: a replay buffer is filled for 100 steps, then every fourth step of the environment learns from a
batch; the target network follows every 100 steps, an episode ends now and then.
"""

import argparse
import os
import random
import time
from collections import deque

import numpy as np
import torch
from torch import nn


class GridWorld:
    """Walk to the goal, do not fall into a hole."""

    MOVES = ((0, 1), (0, -1), (1, 0), (-1, 0))

    def __init__(self, side=5, longest=30):
        self.side, self.longest = side, longest
        self.goal, self.holes = (side - 1, side - 1), {(1, 3), (3, 1)}

    def reset(self):
        self.place, self.age = (0, 0), 0
        return self.observe()

    def observe(self):
        view = np.zeros((self.side, self.side), dtype=np.float32)
        view[self.place] = 1
        return view.ravel()

    def step(self, action):
        self.age += 1
        y, x = (min(max(a + b, 0), self.side - 1) for a, b in zip(self.place, self.MOVES[action], strict=True))
        self.place = (y, x)
        if self.place == self.goal:
            return self.observe(), 1.0, True
        if self.place in self.holes:
            return self.observe(), -1.0, True
        return self.observe(), -0.01, self.age >= self.longest


class ReplayBuffer:
    def __init__(self, capacity):
        self.rows = deque(maxlen=capacity)

    def add(self, *row):
        self.rows.append(row)

    def sample(self, size):
        states, actions, rewards, following, done = zip(*random.sample(self.rows, size), strict=True)
        return (
            torch.from_numpy(np.stack(states)),
            torch.tensor(actions).unsqueeze(1),
            torch.tensor(rewards),
            torch.from_numpy(np.stack(following)),
            torch.tensor(done, dtype=torch.float32),
        )


def make_network(inputs, actions):
    return nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, actions))


def epsilon(step, fraction, total, low=0.05):
    return max(low, 1.0 - (1.0 - low) * step / (fraction * total))


def learn(network, target, optimizer, batch, gamma):
    states, actions, rewards, following, done = batch
    with torch.no_grad():
        best = network(following).argmax(1, keepdim=True)
        goal = rewards + gamma * target(following).gather(1, best).squeeze(1) * (1 - done)
    value = network(states).gather(1, actions).squeeze(1)
    loss = nn.functional.smooth_l1_loss(value, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--total-timesteps", type=int, default=700)
    parser.add_argument("--learning-starts", type=int, default=100)
    parser.add_argument("--train-frequency", type=int, default=4)
    parser.add_argument("--target-frequency", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--gamma", type=float, default=0.97)
    parser.add_argument("--seed", type=int, default=53)
    return parser.parse_args()


def main():
    args = parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    env = GridWorld()
    network, target = make_network(25, 4), make_network(25, 4)
    target.load_state_dict(network.state_dict())
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    buffer = ReplayBuffer(5000)

    # Published curves count steps of the environment; who looks for time looks at updates, too: both are accepted.
    steps, updates, episodes = [], [], []
    state, gained, loss = env.reset(), 0.0, float("nan")
    for global_step in range(args.total_timesteps):
        steps.append(time.monotonic_ns())
        if random.random() < epsilon(global_step, 0.5, args.total_timesteps):
            action = random.randrange(4)
        else:
            with torch.no_grad():
                action = int(network(torch.from_numpy(state)).argmax())
        following, reward, done = env.step(action)
        buffer.add(state, action, reward, following, done)
        gained += reward
        state = following
        if done:
            episodes.append(gained)
            state, gained = env.reset(), 0.0
            if len(episodes) % 10 == 0:
                print(f"step {global_step}: return {np.mean(episodes[-10:]):.2f}, loss {loss:.4f}")
        if global_step >= args.learning_starts and global_step % args.train_frequency == 0:
            updates.append(time.monotonic_ns())
            loss = learn(network, target, optimizer, buffer.sample(args.batch_size), args.gamma)
        if global_step % args.target_frequency == 0:
            target.load_state_dict(network.state_dict())

    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"step {ns}\n" for ns in steps)
        out.writelines(f"update {ns}\n" for ns in updates)


if __name__ == "__main__":
    main()
