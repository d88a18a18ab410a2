"""Tags names and places in old deeds: a small transformer and a Trainer with callbacks, in the manner of a library.

Planted: the callback `SpikeGuard` copies all weights and the optimizer's state after every update, to be able to go
back when the loss explodes; once in 40 updates would do. Truth: 100 updates in 2 epochs, limited by operators (the
model, and the copies, which are native as well); the gain is 39/40 of the measured time of the copies.
"""

import copy
import random
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from truth import problem, tile, write


@dataclass
class TaggerConfig:
    vocab_size: int = 12_000
    hidden_size: int = 128
    num_layers: int = 2
    num_labels: int = 7
    max_length: int = 56


class TaggerLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        d, self.heads = config.hidden_size, 4
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def attention(self, hidden, mask):
        b, t, d = hidden.shape
        q, k, v = self.qkv(hidden).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        return self.out(mixed.transpose(1, 2).reshape(b, t, d))

    def forward(self, hidden, mask):
        hidden = hidden + self.attention(self.norm1(hidden), mask)
        return hidden + self.mlp(self.norm2(hidden))


class TaggerForTokens(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.words = nn.Embedding(config.vocab_size, config.hidden_size)
        self.places = nn.Embedding(config.max_length, config.hidden_size)
        self.layers = nn.ModuleList(TaggerLayer(config) for _ in range(config.num_layers))
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)

    def forward(self, input_ids, attention_mask, labels):
        hidden = self.words(input_ids) + self.places.weight[: input_ids.shape[1]]
        for layer in self.layers:
            hidden = layer(hidden, attention_mask)
        logits = self.classifier(hidden)
        return {"logits": logits, "loss": F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)}


def collate(features):
    ids = pad_sequence([torch.tensor(words) for words, _ in features], batch_first=True)
    labels = pad_sequence([torch.tensor(tags) for _, tags in features], batch_first=True, padding_value=-100)
    return {"input_ids": ids, "attention_mask": labels >= 0, "labels": labels}


class ProgressLine:
    def on_step_end(self, trainer):
        if trainer.global_step % 30 == 0:
            print(f"step {trainer.global_step}: loss {trainer.last_loss.item():.3f}")


class SpikeGuard:
    def __init__(self, factor=5.0):
        self.factor, self.mean, self.good, self.copying = factor, None, None, 0

    def on_step_end(self, trainer):
        loss = trainer.last_loss.item()
        if self.mean is not None and loss > self.factor * self.mean:
            trainer.model.load_state_dict(self.good["model"])
            return trainer.optimizer.load_state_dict(self.good["optimizer"])
        self.mean = loss if self.mean is None else 0.9 * self.mean + 0.1 * loss
        begin = time.monotonic_ns()
        self.good = copy.deepcopy({"model": trainer.model.state_dict(), "optimizer": trainer.optimizer.state_dict()})
        self.copying += time.monotonic_ns() - begin


class Trainer:
    def __init__(self, model, dataset, callbacks, batch_size=10):
        self.model, self.dataset, self.callbacks, self.batch_size = model, dataset, callbacks, batch_size
        self.optimizer, self.global_step = torch.optim.AdamW(model.parameters(), lr=5e-4), 0
        self.spent, self.cuts = dict.fromkeys(("data", "forward", "backward", "optimizer"), 0), []

    def batches(self):
        order = random.sample(range(len(self.dataset)), len(self.dataset))
        for start in range(0, len(order), self.batch_size):
            yield collate([self.dataset[i] for i in order[start : start + self.batch_size]])

    def training_step(self, inputs):
        t0 = time.monotonic_ns()
        loss = self.model(**inputs)["loss"]
        t1 = time.monotonic_ns()
        loss.backward()
        t2 = time.monotonic_ns()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        spans = (t0 - self.cuts[-1], t1 - t0, t2 - t1, time.monotonic_ns() - t2)
        self.spent = {name: ns + span for (name, ns), span in zip(self.spent.items(), spans, strict=True)}
        return loss.detach()

    def train(self, epochs):
        self.cuts.append(time.monotonic_ns())
        for _ in range(epochs):
            for inputs in self.batches():
                self.last_loss = self.training_step(inputs)
                self.global_step += 1
                for callback in self.callbacks:
                    callback.on_step_end(self)
                self.cuts.append(time.monotonic_ns())


def main():
    random.seed(5)
    torch.manual_seed(5)
    torch.set_num_threads(1)
    config, guard, deeds = TaggerConfig(), SpikeGuard(), []
    for _ in range(500):
        words = random.choices(range(1, config.vocab_size), k=random.randint(24, config.max_length))
        deeds.append((words, [word % config.num_labels for word in words]))
    trainer = Trainer(TaggerForTokens(config), deeds, [guard, ProgressLine()])
    trainer.train(epochs=2)
    where, wasted = "deed_tagger.py:SpikeGuard.on_step_end", guard.copying * 39 // 40
    fields = {"unit": "optimizer update", "levels": {"epoch": 2}, "limiting": "operators", "phases_ns": trainer.spent}
    write(tile(trainer.cuts), problem=problem("all weights are copied", where, "operators", wasted_ns=wasted), **fields)


if __name__ == "__main__":
    main()
