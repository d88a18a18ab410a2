"""Advantage actor-critic: four environments side by side play five steps, then one update; the rate falls linearly.
The step is an update with the five steps it learns from.
"""

import os
import time

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical


class MountainCars:
    """Several mountain cars at once; each starts anew when it is up, or too old."""

    def __init__(self, count, seed, longest=80):
        self.draw, self.count, self.longest = np.random.default_rng(seed), count, longest
        self.place, self.speed = np.zeros(count), np.zeros(count)
        self.age = np.zeros(count, dtype=int)

    def _start(self, which):
        self.place[which] = self.draw.uniform(-0.6, -0.4, which.sum())
        self.speed[which] = 0
        self.age[which] = 0

    def reset(self):
        self._start(np.ones(self.count, dtype=bool))
        return self.observe()

    def observe(self):
        return np.stack([self.place, 10 * self.speed], axis=1).astype(np.float32)

    def step(self, actions):
        self.speed = np.clip(self.speed + 0.003 * (actions - 1) - 0.0025 * np.cos(3 * self.place), -0.07, 0.07)
        self.place = np.clip(self.place + self.speed, -1.2, 0.6)
        self.speed[self.place <= -1.2] = 0
        self.age += 1
        up = self.place >= 0.5
        done = up | (self.age >= self.longest)
        reward = np.where(up, 10.0, 20 * np.abs(self.speed) - 0.1)
        if done.any():
            self._start(done)
        return self.observe(), reward.astype(np.float32), done


class ActorCritic(nn.Module):
    def __init__(self, inputs, actions, width=32):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.actor, self.critic = nn.Linear(width, actions), nn.Linear(width, 1)

    def forward(self, x):
        x = self.trunk(x)
        return Categorical(logits=self.actor(x)), self.critic(x).squeeze(-1)


class Learner:
    def __init__(self, envs, updates, n_steps=5, gamma=0.97):
        self.envs, self.updates, self.n_steps, self.gamma = envs, updates, n_steps, gamma
        self.model = ActorCritic(2, 3)
        self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=2e-3, alpha=0.99, eps=1e-5)
        self.scheduler = torch.optim.lr_scheduler.LinearLR(self.optimizer, 1.0, 0.1, updates)
        self.states = torch.from_numpy(envs.reset())
        self.begins = []

    def collect(self):
        log_probs, values, entropies, rewards, masks = [], [], [], [], []
        for _ in range(self.n_steps):
            policy, value = self.model(self.states)
            actions = policy.sample()
            states, reward, done = self.envs.step(actions.numpy())
            log_probs.append(policy.log_prob(actions))
            values.append(value)
            entropies.append(policy.entropy())
            rewards.append(torch.from_numpy(reward))
            masks.append(torch.from_numpy(~done).float())
            self.states = torch.from_numpy(states)
        return torch.stack(log_probs), torch.stack(values), torch.stack(entropies), rewards, masks

    def returns(self, rewards, masks):
        with torch.no_grad():
            _, running = self.model(self.states)
        found = []
        for reward, mask in zip(reversed(rewards), reversed(masks), strict=True):
            running = reward + self.gamma * running * mask
            found.append(running)
        return torch.stack(found[::-1])

    def update(self):
        log_probs, values, entropies, rewards, masks = self.collect()
        advantage = self.returns(rewards, masks) - values
        loss = -(log_probs * advantage.detach()).mean() + 0.5 * advantage.square().mean() - 0.01 * entropies.mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        self.optimizer.step()
        self.scheduler.step()
        return torch.stack(rewards).mean().item()

    def train(self):
        history = []
        for number in range(self.updates):
            self.begins.append(time.monotonic_ns())
            history.append(self.update())
            if number % 20 == 19:
                print(f"update {number + 1}: reward {np.mean(history[-20:]):.3f}")


if __name__ == "__main__":
    torch.manual_seed(54)
    learner = Learner(MountainCars(4, seed=54), updates=80)
    learner.train()
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in learner.begins)
