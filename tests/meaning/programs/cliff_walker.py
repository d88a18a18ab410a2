"""REINFORCE on a 4 x 6 grid world with a cliff: an episode is played by sampling, then one update of the policy.

The policy is a tiny network that is called for one state at a time, so the interpreter and the overhead of small calls
take the time; nothing is wrong with it for its purpose. Truth: 400 episodes are the steps, of up to 120 moves at first
and of some 9 in the end.
"""

import time

import torch
from torch import nn
from torch.distributions import Categorical
from truth import tile, write

ROWS, COLS = 4, 6
MOVES = [(-1, 0), (0, 1), (1, 0), (0, -1)]
GOAL = (ROWS - 1, COLS - 1)
STATES = torch.eye(ROWS * COLS)


def move(cell, action):
    """Next cell, reward, whether the episode ends."""
    dr, dc = MOVES[action]
    r = min(max(cell[0] + dr, 0), ROWS - 1)
    c = min(max(cell[1] + dc, 0), COLS - 1)
    if (r, c) == GOAL:
        return (r, c), 1.0, True
    if r == ROWS - 1 and 0 < c < COLS - 1:
        return (ROWS - 1, 0), -0.1, False
    return (r, c), -0.01, False


def play(policy, limit=120):
    cell, log_probs, rewards, entropy = (ROWS - 1, 0), [], [], 0.0
    for _ in range(limit):
        choice = Categorical(logits=policy(STATES[cell[0] * COLS + cell[1]]))
        action = choice.sample()
        log_probs.append(choice.log_prob(action))
        entropy = entropy + choice.entropy()
        cell, reward, done = move(cell, action.item())
        rewards.append(reward)
        if done:
            break
    return log_probs, rewards, entropy


def returns(rewards, gamma=0.97):
    out, g = [], 0.0
    for r in reversed(rewards):
        g = r + gamma * g
        out.append(g)
    return torch.tensor(out[::-1])


torch.manual_seed(2)
torch.set_num_threads(1)
policy = nn.Sequential(nn.Linear(ROWS * COLS, 32), nn.Tanh(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
length, moves = 60.0, 0
cuts = [time.monotonic_ns()]
for episode in range(400):
    log_probs, rewards, entropy = play(policy)
    loss = -(torch.stack(log_probs) * returns(rewards)).sum() - 0.01 * entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    moves += len(rewards)
    length = 0.95 * length + 0.05 * len(rewards)
    if episode % 30 == 29:
        print(f"episode {episode + 1} length {length:.1f}")
    cuts.append(time.monotonic_ns())

write(
    tile(cuts, "episode"),
    unit="episode",
    limiting="python",
    limiting_also=["operators"],
    levels={"environment step": moves},
)
