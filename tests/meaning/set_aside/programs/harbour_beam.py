"""Translates radio messages of a harbour by beam search over a small encoder and decoder; one message after the other.

Planted: `Translator.scores` encodes the source anew for every token, as it calls the whole model, though only the
target grows. Truth: 60 messages (the loop is a list comprehension), their tokens are the inner level; limited by
operators; the gain is the measured time of all encodings of a message but the first.
"""

import time

import torch
from torch import nn
from truth import problem, tile, write

WORDS, WIDTH, START, END = 900, 160, 0, 1


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(80, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)

    def forward(self, source):
        return self.layers(self.embed(source) + self.places.weight[: source.shape[1]])


class Decoder(nn.Module):
    """A recurrent cell that looks at the encoded source."""

    def __init__(self):
        super().__init__()
        self.embed, self.cell = nn.Embedding(WORDS, WIDTH), nn.GRUCell(2 * WIDTH, WIDTH)
        self.ask, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(2 * WIDTH, WORDS)

    def forward(self, last, hidden, memory):
        weights = torch.softmax(self.ask(hidden) @ memory[0].T / WIDTH**0.5, dim=-1)
        seen = weights @ memory[0]
        hidden = self.cell(torch.cat([self.embed(last), seen], 1), hidden)
        return torch.log_softmax(self.out(torch.cat([hidden, seen], 1)), dim=-1), hidden


class Hypothesis:
    def __init__(self, tokens, score, row):
        self.tokens, self.score, self.row = tokens, score, row

    def rank(self):
        return self.score / len(self.tokens) ** 0.7


class Translator:
    def __init__(self, beams=5):
        self.encoder, self.decoder, self.beams = Encoder().eval(), Decoder().eval(), beams
        self.spent = {"encode": 0, "decode": 0}
        self.again = self.tokens = 0
        self.cuts = []

    def scores(self, source, last, hidden):
        t0 = time.monotonic_ns()
        memory = self.encoder(source)
        t1 = time.monotonic_ns()
        scores, hidden = self.decoder(last, hidden, memory)
        t2 = time.monotonic_ns()
        self.spent["encode"] += t1 - t0
        self.spent["decode"] += t2 - t1
        self.tokens += 1
        return scores, hidden, t1 - t0

    def grow(self, alive, scores):
        """The best continuations of all beams."""
        total = scores + torch.tensor([[each.score] for each in alive])
        best = total.flatten().topk(2 * self.beams)
        grown = []
        for score, place in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            row, token = divmod(place, WORDS)
            grown.append(Hypothesis([*alive[row].tokens, token], score, row))
        return grown

    @torch.inference_mode()
    def translate(self, message):
        source = torch.tensor([message])
        alive, finished = [Hypothesis([START], 0.0, 0)], []
        hidden, longest = torch.zeros(1, WIDTH), len(message) + 4
        for position in range(longest):
            last = torch.tensor([each.tokens[-1] for each in alive])
            scores, hidden, encoding = self.scores(source, last, hidden)
            if position:
                self.again += encoding
            if position < longest // 2:
                scores[:, END] = -1e9
            grown = self.grow(alive, scores)
            finished += [each for each in grown if each.tokens[-1] == END]
            alive = [each for each in grown if each.tokens[-1] != END][: self.beams]
            hidden = hidden[[each.row for each in alive]]
        best = max(finished + alive, key=Hypothesis.rank)
        self.cuts.append(time.monotonic_ns())
        return best.tokens[1:]


def listen(count):
    lengths = torch.randint(12, 44, (count,)).tolist()
    return [torch.randint(2, WORDS, (length,)).tolist() for length in lengths]


def main():
    torch.manual_seed(9)
    torch.set_num_threads(1)
    translator, messages = Translator(), listen(60)
    translator.cuts.append(time.monotonic_ns())
    translated = [translator.translate(message) for message in messages]
    print(f"{len(translated)} messages, {sum(map(len, translated))} words")
    write(
        tile(translator.cuts, "message"),
        unit="message translated",
        levels={"token": translator.tokens},
        limiting="operators",
        phases_ns=translator.spent,
        problem=problem(
            "the source is encoded anew for every token",
            "harbour_beam.py:Translator.scores",
            "operators",
            wasted_ns=translator.again,
        ),
    )


if __name__ == "__main__":
    main()
