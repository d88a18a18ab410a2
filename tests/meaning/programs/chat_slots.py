"""A serving engine for a small language model: six slots answer requests together, who is done makes room for the next.

Planted: for every token `Engine.collate` pads and stacks the kept keys and values of all running requests, which are
kept apart and grow by `torch.cat`, so that all of them are copied again and again. Truth: a step is one of the
engine's (a token for each running request), some with a prefill before; limited by operators (the copies as well).
Tables made once, of which a step writes one row for each slot, are measured after the loop; the difference is the gain.
"""

import random
from collections import deque
from time import monotonic_ns

import torch
import torch.nn.functional as F
from torch import nn
from truth import problem, tile, write

VOCABULARY, WIDTH, HEADS, LAYERS, LONGEST, SLOTS = 2000, 192, 6, 4, 640, 6


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 3 * WIDTH), nn.GELU(), nn.Linear(3 * WIDTH, WIDTH))

    def split(self, x):
        return self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)

    def finish(self, x, mixed):
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def prefill(self, prompt):
        x, kept = (self.words(prompt) + self.places.weight[: len(prompt)])[None], []
        for layer in self.layers:
            q, k, v = layer.split(x)
            kept.append((k[0], v[0]))
            x = layer.finish(x, F.scaled_dot_product_attention(q, k, v, is_causal=True))
        return self.head(x[0, -1]).argmax(), kept

    def decode(self, tokens, places, kept, mask):
        x, fresh = (self.words(tokens) + self.places(places))[:, None], []
        for layer, (keys, values) in zip(self.layers, kept, strict=True):
            q, k, v = layer.split(x)
            fresh.append((k, v))
            keys[:, :, -1:], values[:, :, -1:] = k, v
            x = layer.finish(x, F.scaled_dot_product_attention(q, keys, values, attn_mask=mask))
        return self.head(x[:, 0]).argmax(-1), fresh


class Request:
    def __init__(self, rng):
        self.prompt = torch.tensor([rng.randrange(VOCABULARY) for _ in range(rng.randint(60, 320))])
        self.wanted, self.answer, self.kept = rng.randint(20, 110), [], []


class Engine:
    def __init__(self, model, requests):
        self.model, self.waiting, self.running, self.done = model, deque(requests), [], []
        self.spent = {"prefill": 0, "collate": 0, "decode": 0}

    def admit(self):
        request = self.waiting.popleft()
        token, request.kept = self.model.prefill(request.prompt)
        request.answer.append(token)
        self.running.append(request)

    def collate(self):
        lengths = [each.kept[0][0].shape[1] for each in self.running]
        longest, kept = max(lengths), []
        for layer in range(LAYERS):
            pair = []
            for side in (0, 1):
                rows = [F.pad(each.kept[layer][side], (0, 0, longest - n, 1)) for each, n in zip(self.running, lengths)]
                pair.append(torch.stack(rows))
            kept.append(pair)
        mask = torch.arange(longest + 1) >= longest - torch.tensor(lengths)[:, None]
        return kept, mask[:, None, None], torch.tensor(lengths)

    def step(self):
        t0 = monotonic_ns()
        admitted = 0
        while self.waiting and len(self.running) < SLOTS:
            self.admit()
            admitted += 1
        t1 = monotonic_ns()
        kept, mask, lengths = self.collate()
        t2 = monotonic_ns()
        tokens, fresh = self.model.decode(torch.stack([r.answer[-1] for r in self.running]), lengths, kept, mask)
        t3 = monotonic_ns()
        for row, request in enumerate(self.running):
            request.answer.append(tokens[row])
            both = [zip(old, new, strict=True) for old, new in zip(request.kept, fresh, strict=True)]
            request.kept = [[torch.cat([old, new[row]], 1) for old, new in pair] for pair in both]
        t4 = monotonic_ns()
        self.done += [each for each in self.running if len(each.answer) >= each.wanted]
        self.running = [each for each in self.running if len(each.answer) < each.wanted]
        spans = (t1 - t0, t2 - t1 + t4 - t3, t3 - t2)
        self.spent = {name: ns + span for (name, ns), span in zip(self.spent.items(), spans, strict=True)}
        return "prefill + decode" if admitted else "decode"


@torch.inference_mode()
def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    rng = random.Random(2)
    engine = Engine(Model().eval(), [Request(rng) for _ in range(40)])
    cuts, kinds = [monotonic_ns()], []
    while engine.waiting or engine.running:
        kinds.append(engine.step())
        cuts.append(monotonic_ns())
    print(f"{len(engine.done)} answers, {sum(len(each.answer) for each in engine.done)} tokens, {len(kinds)} steps")

    table, row = torch.zeros(SLOTS, HEADS, LONGEST, WIDTH // HEADS), torch.ones(SLOTS, HEADS, WIDTH // HEADS)
    begin = monotonic_ns()
    for place in range(2 * LAYERS * 50):
        table[torch.arange(SLOTS), :, torch.full((SLOTS,), place)] = row
    in_place = (monotonic_ns() - begin) // 50 * len(kinds)
    where, wasted = "chat_slots.py:Engine.collate", engine.spent["collate"] - in_place
    found = problem("kept keys and values are stacked for every token", where, "operators", wasted_ns=wasted)
    fields = {"levels": {"request": 40}, "limiting": "operators", "phases_ns": engine.spent, "problem": found}
    fields["outliers"] = {0: "prefills for all six slots"}
    write(tile(cuts, kinds), unit="engine step (a token for each running request)", **fields)


if __name__ == "__main__":
    main()
