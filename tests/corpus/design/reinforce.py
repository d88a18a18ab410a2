"""REINFORCE on a pole that must be balanced: an episode of random length, then one update."""

import math
import os
import random
import time

import torch
from torch import nn
from torch.distributions import Categorical


class Pole:
    def reset(self):
        self.angle, self.speed = random.uniform(-0.05, 0.05), 0.0
        return [self.angle, self.speed]

    def step(self, action):
        push = 2.0 if action == 1 else -2.0
        self.speed += 0.05 * (9.8 * math.sin(self.angle) + push * math.cos(self.angle))
        self.angle += 0.05 * self.speed
        return [self.angle, self.speed], abs(self.angle) < 0.4


def play(policy, env, longest=25):
    state, log_probs, rewards = env.reset(), [], []
    for _ in range(longest):
        chances = Categorical(logits=policy(torch.tensor(state)))
        action = chances.sample()
        state, alive = env.step(action.item())
        log_probs.append(chances.log_prob(action))
        rewards.append(1.0)
        if not alive:
            break
    return log_probs, rewards


def returns(rewards, gamma=0.98):
    total, found = 0.0, []
    for reward in reversed(rewards):
        total = reward + gamma * total
        found.append(total)
    return torch.tensor(found[::-1])


def main():
    random.seed(20)
    torch.manual_seed(20)
    env, policy = Pole(), nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=2e-2)
    begins = []
    for episode in range(40):
        begins.append(time.monotonic_ns())
        log_probs, rewards = play(policy, env)
        gains = returns(rewards)
        gains = (gains - gains.mean()) / (gains.std(unbiased=False) + 1e-6)
        loss = -(torch.stack(log_probs) * gains).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if episode % 10 == 9:
            print(f"episode {episode + 1}: length {len(rewards)}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
