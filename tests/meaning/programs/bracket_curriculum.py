"""Teaches a recurrent network to tell how deeply brackets are nested, from short strings to long ones.

`Course.attend` is a while loop over lessons, which takes the next one from its curriculum after enough updates and an
examination. Truth: 280 updates, 40 in each of 7 lessons, which take longer and longer by design, and 7 examinations
beside them. Healthy: the GRU takes nearly all of the time, limited by operators; batches are indexed from a pool.
"""

import time
from collections import deque

import torch
from torch import nn
from truth import tile, write

OPEN, CLOSE, DEPTHS = 0, 1, 9


class Nesting(nn.Module):
    def __init__(self, width=144):
        super().__init__()
        self.embed = nn.Embedding(2, 32)
        self.gru = nn.GRU(32, width, batch_first=True)
        self.depth = nn.Linear(width, DEPTHS)

    def forward(self, brackets):
        return self.depth(self.gru(self.embed(brackets))[0])


def draw(length, count):
    """Brackets of random walks that are kept between 0 and the greatest depth, and the depth after each of them."""
    walk = torch.randint(0, 2, (count, length)) * 2 - 1
    depth, depths = torch.zeros(count, dtype=torch.long), []
    for move in walk.unbind(1):
        move = torch.where(depth == 0, torch.ones_like(move), move)
        move = torch.where(depth == DEPTHS - 1, -torch.ones_like(move), move)
        depth = depth + move
        depths.append(depth)
    depths = torch.stack(depths, 1)
    return (torch.diff(depths, dim=1, prepend=torch.zeros(count, 1, dtype=torch.long)) < 0).long(), depths


class Course:
    def __init__(self, lengths, updates=40):
        self.curriculum, self.updates = deque(lengths), updates
        self.pool = {length: draw(length, 480) for length in lengths}
        self.model = Nesting()
        self.optimizer = torch.optim.NAdam(self.model.parameters(), lr=2e-3)
        self.loss = nn.CrossEntropyLoss()
        self.cuts, self.kinds = [], []
        self.spent = dict.fromkeys(("data", "forward", "backward", "optimizer", "validation"), 0)

    def cut(self, kind):
        self.cuts.append(time.monotonic_ns())
        self.kinds.append(kind)

    def mix(self, length, size=24):
        """A batch from the lesson's pool."""
        brackets, depths = self.pool[length]
        picks = torch.randint(0, len(brackets), (size,))
        return brackets[picks], depths[picks]

    def update(self, length):
        brackets, depths = self.mix(length)
        t0 = time.monotonic_ns()
        scores = self.model(brackets)
        loss = self.loss(scores.flatten(0, 1), depths.flatten())
        t1 = time.monotonic_ns()
        self.optimizer.zero_grad(set_to_none=True)
        t2 = time.monotonic_ns()
        loss.backward()
        t3 = time.monotonic_ns()
        nn.utils.clip_grad_value_(self.model.parameters(), 0.5)
        self.optimizer.step()
        t4 = time.monotonic_ns()
        self.spent["data"] += t0 - self.cuts[-1]
        self.spent["forward"] += t1 - t0
        self.spent["backward"] += t3 - t2
        self.spent["optimizer"] += t2 - t1 + t4 - t3
        self.cut("train")

    @torch.no_grad()
    def examine(self, length):
        brackets, depths = (part[:96] for part in self.pool[length])
        right = (self.model(brackets).argmax(-1) == depths).float().mean().item()
        print(f"length {length}: {right:.1%} right")
        self.spent["validation"] += time.monotonic_ns() - self.cuts[-1]
        self.cut("validation")

    def attend(self):
        self.cuts.append(time.monotonic_ns())
        length, done = self.curriculum.popleft(), 0
        while True:
            if done < self.updates:
                self.update(length)
                done += 1
                continue
            self.examine(length)
            if not self.curriculum:
                return
            length, done = self.curriculum.popleft(), 0


if __name__ == "__main__":
    torch.manual_seed(7)
    torch.set_num_threads(1)
    course = Course(lengths=range(16, 113, 16))
    course.attend()
    write(
        tile(course.cuts, course.kinds),
        unit="optimizer update",
        beside=["validation"],
        levels={"lesson": 7},
        limiting="operators",
        phases_ns=course.spent,
    )
