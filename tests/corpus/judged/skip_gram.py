"""Word vectors by skip-gram with negative samples: pairs are drawn by hand, no loader, the rate is lowered by hand."""

import os
import random
import time

import torch
from torch import nn

random.seed(5)
torch.manual_seed(5)
WORDS = 200


def draw(batch):
    centres = [random.randrange(WORDS) for _ in range(batch)]
    contexts = [(word + random.choice((-2, -1, 1, 2))) % WORDS for word in centres]
    wrong = [[random.randrange(WORDS) for _ in range(5)] for _ in centres]
    return torch.tensor(centres), torch.tensor(contexts), torch.tensor(wrong)


class SkipGram(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Embedding(WORDS, 16), nn.Embedding(WORDS, 16)

    def forward(self, centres, contexts, wrong):
        v = self.inner(centres)
        right = nn.functional.logsigmoid((v * self.outer(contexts)).sum(dim=1))
        others = nn.functional.logsigmoid(-torch.bmm(self.outer(wrong), v.unsqueeze(2)).squeeze(2)).sum(dim=1)
        return -(right + others).mean()


def main():
    begins = []
    model = SkipGram()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(150):
        begins.append(time.monotonic_ns())
        loss = model(*draw(64))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            for group in optimizer.param_groups:
                group["lr"] *= 0.5
            print(step, loss.item())
    return begins


begins = main()
with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
    out.writelines(f"update {ns}\n" for ns in begins)
