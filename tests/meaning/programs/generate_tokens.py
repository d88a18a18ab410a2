"""Greedy generation with a small decoder that keeps keys and values: six prompts, each answered by 30 tokens.

Healthy and compute-bound. A step is one request (prompt and its tokens): 6; tokens are the inner level: 180. There is no
training, hence no forward, backward or optimizer phase; prefill and decode instead.
"""

from time import monotonic_ns

import torch
import torch.nn.functional as F
from torch import nn
from truth import tile, write


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, cache):
        b, n, w = x.shape
        q, k, v = (part.view(b, n, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        if cache:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=not cache)
        x = x + self.proj(y.transpose(1, 2).reshape(b, n, w))
        return x + self.mlp(x), (k, v)


class Decoder(nn.Module):
    def __init__(self, vocab=1000, width=512, layers=4):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(Layer(width, 8) for _ in range(layers))
        self.lm_head = nn.Linear(width, vocab, bias=False)

    def forward(self, ids, caches):
        x = self.embed(ids)
        new = []
        for layer, cache in zip(self.layers, caches, strict=True):
            x, kv = layer(x, cache)
            new.append(kv)
        return self.lm_head(x[:, -1]), new


@torch.inference_mode()
def generate(model, prompt, max_new_tokens=30):
    t0 = monotonic_ns()
    logits, caches = model(prompt, [None] * 4)
    t1 = monotonic_ns()
    out = []
    for _ in range(max_new_tokens - 1):
        token = logits.argmax(-1, keepdim=True)
        out.append(token)
        logits, caches = model(token, caches)
    return torch.cat(out, 1), t1 - t0, monotonic_ns() - t1


torch.manual_seed(0)
torch.set_num_threads(1)
model = Decoder().eval()
prompts = [torch.randint(0, 1000, (1, 200)) for _ in range(6)]
prefill = decode = 0
cuts = [monotonic_ns()]
for prompt in prompts:
    answer, a, b = generate(model, prompt)
    prefill, decode = prefill + a, decode + b
    cuts.append(monotonic_ns())
write(
    tile(cuts, "request"),
    unit="request",
    limiting="operators",
    levels={"token": 180},
    phases_ns={"prefill": prefill, "decode": decode},
)
