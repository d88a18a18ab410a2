"""A translation service: requests are answered in batches of four, greedily, until each has produced its end token."""

import os
import time

import torch
from torch import nn

END, WORDS = 0, 40


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 24)
        self.encoder = nn.GRU(24, 24, batch_first=True)
        self.decoder = nn.GRUCell(24, 24)
        self.out = nn.Linear(24, WORDS)

    def encode(self, source):
        return self.encoder(self.embed(source))[1].squeeze(0)

    def decode(self, word, state):
        state = self.decoder(self.embed(word), state)
        return self.out(state), state


def translate(model, source, tokens, longest=30):
    state = model.encode(source)
    word = torch.ones(len(source), dtype=torch.long)
    finished = torch.zeros(len(source), dtype=torch.bool)
    answer = []
    while not finished.all() and len(answer) < longest:
        tokens.append(time.monotonic_ns())
        scores, state = model.decode(word, state)
        scores[:, END] += 0.15 * len(answer)
        word = (scores + torch.randn_like(scores)).argmax(1)
        finished |= word == END
        answer.append(word)
    return torch.stack(answer, dim=1)


def main():
    torch.manual_seed(40)
    model = Translator().eval()
    batches, tokens = [], []
    with torch.inference_mode():
        for _ in range(40):
            batches.append(time.monotonic_ns())
            source = torch.randint(1, WORDS, (4, int(torch.randint(3, 15, ()))))
            answer = translate(model, source, tokens)
            print(answer.shape[1], end=" ")
    print()
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"batch {ns}\n" for ns in batches)
        out.writelines(f"token {ns}\n" for ns in tokens)


if __name__ == "__main__":
    main()
