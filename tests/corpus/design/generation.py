"""Token generation with a key-value cache: requests of random length are answered one after the other; no training."""

import os
import random
import time

import torch
from torch import nn

WIDTH, HEADS, LAYERS, VOCABULARY = 32, 4, 3, 100


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, cache):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        if cache:
            k, v = torch.cat([cache[0], k], dim=1), torch.cat([cache[1], v], dim=1)
        heads = [part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in (q, k, v)]
        y = nn.functional.scaled_dot_product_attention(*heads, is_causal=cache is None)
        return self.out(y.transpose(1, 2).flatten(2)), (k, v)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 64), nn.SiLU(), nn.Linear(64, WIDTH))

    def forward(self, x, cache):
        y, cache = self.attention(self.norm1(x), cache)
        x = x + y
        return x + self.mlp(self.norm2(x)), cache


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids, caches):
        x, kept = self.embed(ids), []
        for layer, cache in zip(self.layers, caches, strict=True):
            x, cache = layer(x, cache)
            kept.append(cache)
        return self.head(x[:, -1]), kept


@torch.inference_mode()
def generate(model, prompt, length, tokens):
    ids, caches, answer = prompt, [None] * LAYERS, []
    for _ in range(length):
        tokens.append(time.monotonic_ns())
        logits, caches = model(ids, caches)
        ids = torch.multinomial(torch.softmax(logits / 0.8, dim=-1), 1)
        answer.append(ids.item())
    return answer


def main():
    random.seed(6)
    torch.manual_seed(6)
    model = Decoder().eval()
    requests, tokens = [], []
    for _ in range(30):
        requests.append(time.monotonic_ns())
        prompt = torch.randint(VOCABULARY, (1, random.randint(3, 12)))
        answer = generate(model, prompt, random.randint(5, 40), tokens)
        print(len(answer), "tokens")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"request {ns}\n" for ns in requests)
        out.writelines(f"token {ns}\n" for ns in tokens)


if __name__ == "__main__":
    main()
