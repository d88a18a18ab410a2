"""PPO: collect a rollout of 32 transitions, then two epochs of four minibatch updates on it; clipped objective."""

import os
import time

import torch
from torch import nn
from torch.distributions import Normal

ROLLOUT, EPOCHS, MINIBATCH = 32, 2, 8


class Track:
    """A point that must be kept at zero."""

    def reset(self):
        self.place, self.age = torch.randn(1), 0
        return self.place

    def step(self, action):
        self.place = self.place + 0.1 * action.clamp(-2, 2) + 0.05 * torch.randn(1)
        self.age += 1
        return self.place, -self.place.abs().item(), self.age >= 20


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
        self.critic = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
        self.log_std = nn.Parameter(torch.zeros(1))

    def policy(self, states):
        return Normal(self.actor(states), self.log_std.exp())


@torch.no_grad()
def rollout(agent, env, state):
    rows = []
    for _ in range(ROLLOUT):
        policy = agent.policy(state)
        action = policy.sample()
        following, reward, done = env.step(action)
        rows.append((state, action, policy.log_prob(action), agent.critic(state), reward, done))
        state = env.reset() if done else following
    return rows, state


def advantages(rows, last_value, gamma=0.95, lam=0.9):
    found, running, value = [], 0.0, last_value
    for _, _, _, v, reward, done in reversed(rows):
        delta = reward + gamma * value * (not done) - v.item()
        running = delta + gamma * lam * running * (not done)
        found.append(running)
        value = v.item()
    return torch.tensor(found[::-1])


def main():
    torch.manual_seed(32)
    env, agent = Track(), Agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3, eps=1e-5)
    state = env.reset()
    iterations, updates = [], []
    for iteration in range(12):
        iterations.append(time.monotonic_ns())
        rows, state = rollout(agent, env, state)
        states, actions, log_probs, values = (torch.stack(c).view(-1, 1) for c in list(zip(*rows, strict=True))[:4])
        gains = advantages(rows, agent.critic(state).item())
        goals = gains + values.squeeze(1)
        gains = (gains - gains.mean()) / (gains.std() + 1e-8)
        for _ in range(EPOCHS):
            for pick in torch.randperm(ROLLOUT).split(MINIBATCH):
                updates.append(time.monotonic_ns())
                ratio = (agent.policy(states[pick]).log_prob(actions[pick]) - log_probs[pick]).exp().squeeze(1)
                clipped = ratio.clamp(0.8, 1.2)
                actor_loss = -torch.min(ratio * gains[pick], clipped * gains[pick]).mean()
                critic_loss = (agent.critic(states[pick]).squeeze(1) - goals[pick]).square().mean()
                optimizer.zero_grad()
                (actor_loss + 0.5 * critic_loss).backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        if iteration % 4 == 3:
            print(f"iteration {iteration + 1}: reward {sum(row[4] for row in rows) / ROLLOUT:.3f}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"iteration {ns}\n" for ns in iterations)
        out.writelines(f"update {ns}\n" for ns in updates)


if __name__ == "__main__":
    main()
