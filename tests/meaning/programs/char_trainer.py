"""A Trainer with callbacks trains a decoder on characters: four micro-batches per update, warm-up and cosine decay.

Healthy and compute-bound. Truth: 30 updates of 4 micro-batches each; the schedule and clipping belong to the optimizer.
"""

import math
import time

import torch
from torch import nn
from truth import tile, write


class Decoder(nn.Module):
    def __init__(self, d=128):
        super().__init__()
        self.embed, self.place, self.head = nn.Embedding(64, d), nn.Embedding(64, d), nn.Linear(d, 64)
        layer = nn.TransformerEncoderLayer(d, 4, 4 * d, dropout=0.1, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.mask = nn.Transformer.generate_square_subsequent_mask(64)

    def forward(self, ids):
        return self.head(self.body(self.embed(ids) + self.place.weight, mask=self.mask, is_causal=True))


class Progress:
    def on_update_end(self, trainer):
        if trainer.updates % 10 == 0:
            print(f"update {trainer.updates} loss {trainer.loss:.3f} lr {trainer.schedule.get_last_lr()[0]:.2e}")


class Stopwatch:
    def on_train_begin(self, trainer):
        self.sums, self.cuts, self.last = {}, [time.monotonic_ns()], time.monotonic_ns()

    def on_phase(self, trainer, name):
        now = time.monotonic_ns()
        self.sums[name], self.last = self.sums.get(name, 0) + now - self.last, now

    def on_update_end(self, trainer):
        self.cuts.append(self.last)


class Trainer:
    def __init__(self, model, text, updates, accumulate, callbacks):
        self.model, self.text, self.callbacks = model, text, callbacks
        self.updates, self.max_updates, self.accumulate = 0, updates, accumulate
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
        rate = lambda n: (n + 1) / 5 if n < 5 else 0.5 * (1 + math.cos(math.pi * n / updates))
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, rate)

    def call(self, event, *args):
        for callback in self.callbacks:
            getattr(callback, event, lambda *_: None)(self, *args)

    def fit(self):
        self.call("on_train_begin")
        for self.updates in range(1, self.max_updates + 1):
            for _ in range(self.accumulate):
                rows = self.text[torch.randint(len(self.text) - 65, (16, 1)) + torch.arange(65)]
                ids, target = rows[:, :-1], rows[:, 1:]
                self.call("on_phase", "data")
                loss = nn.functional.cross_entropy(self.model(ids).flatten(0, 1), target.flatten()) / self.accumulate
                self.call("on_phase", "forward")
                loss.backward()
                self.call("on_phase", "backward")
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.schedule.step()
            self.optimizer.zero_grad()
            self.call("on_phase", "optimizer")
            self.loss = loss.item() * self.accumulate
            self.call("on_update_end")


torch.manual_seed(0)
torch.set_num_threads(1)
watch, micro = Stopwatch(), {"micro-batch": 120}
Trainer(Decoder(), torch.randint(64, (50000,)), 30, 4, [Progress(), watch]).fit()
write(tile(watch.cuts), unit="optimizer update", limiting="operators", levels=micro, phases_ns=watch.sums)
