"""A tiny GPT on characters in nanoGPT's style: get_batch, no loader, clipping, a warm-up, evaluation every 10."""

import math
import os
import time

import torch
from torch import nn
from torch.nn import functional

BLOCK, BATCH, WIDTH, HEADS, LAYERS = 32, 8, 32, 4, 2
TEXT = "the quick brown fox jumps over the lazy dog. pack my box with five dozen liquor jugs. " * 40


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def attend(self, x):
        batch, time_steps, _ = x.shape
        q, k, v = (
            part.view(batch, time_steps, HEADS, WIDTH // HEADS).transpose(1, 2) for part in self.qkv(x).split(WIDTH, 2)
        )
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(batch, time_steps, WIDTH))

    def forward(self, x):
        x = x + self.attend(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, WIDTH)
        self.places = nn.Embedding(BLOCK, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, vocabulary, bias=False)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def get_batch(data):
    at = torch.randint(len(data) - BLOCK - 1, (BATCH,))
    return torch.stack([data[i : i + BLOCK] for i in at]), torch.stack([data[i + 1 : i + 1 + BLOCK] for i in at])


@torch.no_grad()
def estimate_loss(model, splits):
    model.eval()
    found = {}
    for name, data in splits.items():
        losses = torch.zeros(3)
        for k in range(3):
            losses[k] = model(*get_batch(data)).item()
        found[name] = losses.mean().item()
    model.train()
    return found


def learning_rate(step):
    return 3e-3 * (step + 1) / 10 if step < 10 else 3e-3 * (0.5 + 0.5 * math.cos(math.pi * (step - 10) / 60))


def main():
    torch.manual_seed(1337)
    letters = sorted(set(TEXT))
    data = torch.tensor([letters.index(c) for c in TEXT])
    splits = {"train": data[:3000], "val": data[3000:]}
    model = GPT(len(letters))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1)
    begins = []
    for step in range(60):
        begins.append(time.monotonic_ns())
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        if step % 10 == 0:
            losses = estimate_loss(model, splits)
            print(f"step {step}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}")
        x, y = get_batch(splits["train"])
        loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
