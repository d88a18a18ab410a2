"""Translation of digit strings with attention: the decoder is stepped token by token with teacher forcing half of the
time; every 25 updates a few sentences are translated by beam search. The step is an update.
"""

import os
import random
import time

import torch
from torch import nn
from torch.nn import functional

BOS, EOS, PAD = 10, 11, 12
SYMBOLS = 13


def sentence_pair():
    source = [random.randrange(10) for _ in range(random.randint(3, 9))]
    target = [(9 - digit) % 10 for digit in reversed(source)]
    return source, target


def pad(rows):
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


def make_batch(size):
    pairs = [sentence_pair() for _ in range(size)]
    return pad([source for source, _ in pairs]), pad([[*target, EOS] for _, target in pairs])


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, width, padding_idx=PAD)
        self.rnn = nn.GRU(width, width, batch_first=True)

    def forward(self, source):
        return self.rnn(self.embedding(source))


class Decoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, width, padding_idx=PAD)
        self.cell = nn.GRUCell(2 * width, width)
        self.query = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(2 * width, SYMBOLS)

    def forward(self, token, hidden, memory, ignored):
        scores = torch.einsum("bw,btw->bt", self.query(hidden), memory).masked_fill(ignored, -1e9)
        context = torch.einsum("bt,btw->bw", scores.softmax(dim=1), memory)
        hidden = self.cell(torch.cat([self.embedding(token), context], dim=1), hidden)
        return self.out(torch.cat([hidden, context], dim=1)), hidden


class Seq2Seq(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.encoder, self.decoder = Encoder(width), Decoder(width)

    def forward(self, source, target, forcing):
        memory, last = self.encoder(source)
        hidden, ignored = last[0], source == PAD
        token = torch.full((len(source),), BOS)
        found = []
        for t in range(target.shape[1]):
            logits, hidden = self.decoder(token, hidden, memory, ignored)
            found.append(logits)
            token = target[:, t] if random.random() < forcing else logits.argmax(1).detach()
        return torch.stack(found, dim=1)

    @torch.no_grad()
    def beam_search(self, source, beams=3, longest=12):
        memory, last = self.encoder(source)
        ignored = source == PAD
        kept = [(0.0, [BOS], last[0])]
        for _ in range(longest):
            grown = []
            for score, tokens, hidden in kept:
                if tokens[-1] == EOS:
                    grown.append((score, tokens, hidden))
                    continue
                logits, following = self.decoder(torch.tensor(tokens[-1:]), hidden, memory, ignored)
                values, ids = logits.log_softmax(1)[0].topk(beams)
                for value, token in zip(values.tolist(), ids.tolist(), strict=True):
                    grown.append((score + value, [*tokens, token], following))
            kept = sorted(grown, key=lambda each: -each[0] / len(each[1]))[:beams]
            if all(tokens[-1] == EOS for _, tokens, _ in kept):
                break
        return [token for token in kept[0][1] if token < BOS]


def translate_some(model, pairs):
    model.eval()
    hits = sum(model.beam_search(torch.tensor([source])) == target for source, target in pairs)
    model.train()
    return hits / len(pairs)


def main(updates=75, batch_size=16):
    random.seed(52)
    torch.manual_seed(52)
    model = Seq2Seq()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    held_out = [sentence_pair() for _ in range(4)]
    begins, running = [], None
    for update in range(1, updates + 1):
        begins.append(time.monotonic_ns())
        source, target = make_batch(batch_size)
        logits = model(source, target, forcing=0.5)
        loss = functional.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        running = loss.item() if running is None else 0.9 * running + 0.1 * loss.item()
        if update % 25 == 0:
            print(f"update {update}: loss {running:.3f}, translated {translate_some(model, held_out):.0%}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
