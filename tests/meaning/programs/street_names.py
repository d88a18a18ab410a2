"""Invents street names: a GRU reads each request's prompt in one call and then samples one token after the other.

24 requests with prompts of 8 to 40 tokens ask for 30 to 90 tokens each, drawn from the ten likeliest. Healthy and
compute-bound: matrix-vector products of a wide recurrent network. Truth: a step is one request, 24 in all; tokens are
the inner level. No training: prefill and decode instead of forward and backward.
"""

import time

import torch
from torch import nn
from truth import tile, write

VOCABULARY = 2000


class NameModel(nn.Module):
    def __init__(self, width=768, layers=2):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.gru = nn.GRU(width, width, layers, batch_first=True)
        self.out = nn.Linear(width, VOCABULARY)

    def forward(self, tokens, state=None):
        hidden, state = self.gru(self.embed(tokens), state)
        return self.out(hidden[:, -1]), state


def sample(logits, temperature=0.8, best=10):
    values, indices = torch.topk(logits / temperature, best)
    return indices.gather(1, torch.multinomial(values.softmax(dim=-1), 1))


def answer(model, request, spent):
    t0 = time.monotonic_ns()
    logits, state = model(request["prompt"][None])
    t1 = time.monotonic_ns()
    tokens = []
    while len(tokens) < request["length"]:
        token = sample(logits)
        tokens.append(token.item())
        logits, state = model(token, state)
    spent["prefill"] += t1 - t0
    spent["decode"] += time.monotonic_ns() - t1
    return tokens


def requests(count):
    for number in range(count):
        prompt = torch.randint(0, VOCABULARY, (8 + number * 11 % 33,))
        yield {"id": number, "prompt": prompt, "length": 30 + number * 25 % 61}


def serve():
    torch.manual_seed(17)
    torch.set_num_threads(1)
    model = NameModel().eval()
    spent = {"prefill": 0, "decode": 0}
    answers = {}
    cuts = [time.monotonic_ns()]
    with torch.inference_mode():
        for request in requests(24):
            answers[request["id"]] = answer(model, request, spent)
            cuts.append(time.monotonic_ns())
    total = sum(len(tokens) for tokens in answers.values())
    print(f"{len(answers)} names, {total} tokens, {total / (cuts[-1] - cuts[0]) * 1e9:.0f} tokens/s")
    write(tile(cuts, "request"), unit="request", limiting="operators", levels={"token": total}, phases_ns=spent)


if __name__ == "__main__":
    serve()
