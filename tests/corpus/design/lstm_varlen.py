"""A sequence tagger with LSTMCells stepped by hand; every batch has another length, so every step other trip counts."""

import os
import random
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

random.seed(4)
torch.manual_seed(4)


def sentence():
    words = torch.randint(1, 50, (random.randint(4, 30),))
    return words, words % 5


def collate(batch):
    words, tags = zip(*batch, strict=True)
    return pad_sequence(words, batch_first=True), pad_sequence(tags, batch_first=True, padding_value=-100)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16, padding_idx=0)
        self.cell = nn.LSTMCell(16, 24)
        self.out = nn.Linear(24, 5)

    def forward(self, words):
        h = torch.zeros(len(words), 24)
        c = torch.zeros(len(words), 24)
        scores = []
        for position in range(words.shape[1]):
            h, c = self.cell(self.embed(words[:, position]), (h, c))
            scores.append(self.out(h))
        return torch.stack(scores, dim=1)


sentences = [sentence() for _ in range(240)]
sentences.sort(key=lambda pair: len(pair[0]))  # bucketed by length, then the buckets are shuffled
buckets = [list(range(i, i + 4)) for i in range(0, len(sentences), 4)]
random.shuffle(buckets)
loader = DataLoader(sentences, batch_sampler=buckets, collate_fn=collate)
tagger = Tagger()
optimizer = torch.optim.RMSprop(tagger.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss(ignore_index=-100)
begins = []
for words, tags in loader:
    begins.append(time.monotonic_ns())
    loss = criterion(tagger(words).flatten(0, 1), tags.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(tagger.parameters(), 5.0)
    optimizer.step()
with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
    out.writelines(f"update {ns}\n" for ns in begins)
