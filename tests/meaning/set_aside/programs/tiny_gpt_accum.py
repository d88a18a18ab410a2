"""A tiny GPT-like language model with gradient accumulation over 3 micro-batches, on a Markov chain of tokens.

Healthy and compute-bound. Truth: 50 updates, each of 3 micro-batches (150 in all); the optimizer runs in every third.
"""

import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from truth import tile, write

torch.set_num_threads(1)
torch.manual_seed(1337)

# hyperparameters
block_size, batch_size, vocab, n_embd, n_head, n_layer = 64, 8, 96, 128, 4, 2
accum, max_iters = 3, 150


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.register_buffer("mask", torch.tril(torch.ones(block_size, block_size)).bool())

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, n_head, C // n_head).transpose(1, 2) for t in self.c_attn(x).split(n_embd, 2))
        att = (q @ k.transpose(-2, -1)) / math.sqrt(C // n_head)
        att = att.masked_fill(~self.mask[:T, :T], float("-inf")).softmax(-1)
        return self.c_proj((att @ v).transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention()
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, n_embd), nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList(Block() for _ in range(n_layer))
        self.ln_f, self.lm_head = nn.LayerNorm(n_embd), nn.Linear(n_embd, vocab, bias=False)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe.weight[: idx.shape[1]]
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, vocab), targets.reshape(-1))


def get_batch():
    ix = torch.randint(len(tokens) - block_size - 1, (batch_size,))
    x = torch.stack([tokens[i : i + block_size] for i in ix])
    y = torch.stack([tokens[i + 1 : i + 1 + block_size] for i in ix])
    return x, y


tokens = (torch.cumsum(torch.randint(0, 4, (50000,)), 0)) % vocab
model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))
clock = time.monotonic_ns
data = fwd = bwd = opt = 0
first = last = None
optimizer.zero_grad(set_to_none=True)
t0 = clock()
cuts = [t0]
for i in range(max_iters):
    xb, yb = get_batch()
    t1 = clock()
    loss = model(xb, yb) / accum
    t2 = clock()
    loss.backward()
    t3 = clock()
    data, fwd, bwd = data + t1 - t0, fwd + t2 - t1, bwd + t3 - t2
    if (i + 1) % 3 == 0:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        opt += clock() - t3
        last = loss.item() * accum
        first = first or last
        if (i + 1) % 30 == 0:
            print(f"iter {i + 1}: loss {last:.4f}")
        cuts.append(clock())
    t0 = clock()
assert last < first and len(cuts) == 51
write(
    tile(cuts, "train"),
    unit="optimizer update",
    limiting="operators",
    levels={"micro-batch": max_iters},
    phases_ns={"data": data, "forward": fwd, "backward": bwd, "optimizer": opt},
)
