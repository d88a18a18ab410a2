"""Forecasts tides with a Trainer of its own: callbacks at begin and end of a step, five of them before each forward pass.

Truth: 160 updates (2 epochs of 80), healthy, limited by operators: a GRU over 36 hours. Callbacks before the forward pass (warm-up of the
learning rate, which counts as optimizer; logs of rate, inputs and gradients; progress) take a few percent together.
"""

import time

import torch
from torch import nn
from truth import tile, write


class Callback:
    def on_epoch_begin(self, trainer): ...
    def on_step_begin(self, trainer): ...
    def before_forward(self, trainer, batch): ...
    def after_backward(self, trainer): ...
    def on_step_end(self, trainer): ...
    def on_epoch_end(self, trainer): ...


class WarmUp(Callback):
    def __init__(self, steps):
        self.steps = steps

    def before_forward(self, trainer, batch):
        begin = time.monotonic_ns()
        for group in trainer.optimizer.param_groups:
            group["lr"] = trainer.lr * min(1.0, (trainer.step + 1) / self.steps)
        trainer.spent["optimizer"] += time.monotonic_ns() - begin


class LogRate(Callback):
    def before_forward(self, trainer, batch):
        trainer.log["lr"].append(trainer.optimizer.param_groups[0]["lr"])


class LogInputs(Callback):
    def before_forward(self, trainer, batch):
        x, _ = batch
        trainer.log["inputs"].append({"mean": x.mean().item(), "std": x.std().item(), "max": x.abs().max().item()})


class LogGradients(Callback):
    def before_forward(self, trainer, batch):
        grads = [p.grad for p in trainer.model.parameters() if p.grad is not None]
        if grads:
            trainer.log["gradients"].append(torch.stack([g.norm() for g in grads]).norm().item())


class Progress(Callback):
    def before_forward(self, trainer, batch):
        if trainer.step % 40 == 0:
            print(f"step {trainer.step}: {len(batch[0])} windows, rate {trainer.optimizer.param_groups[0]['lr']:.2e}")

    def on_epoch_end(self, trainer):
        print(f"epoch {trainer.epoch}: {sum(trainer.log['loss'][-80:]) / 80:.4f}")


class History(Callback):
    def on_step_end(self, trainer):
        trainer.log["loss"].append(trainer.loss.item())


class TideNet(nn.Module):
    def __init__(self, gauges=6, hidden=72):
        super().__init__()
        self.gru = nn.GRU(gauges, hidden, batch_first=True)
        self.head = nn.Sequential(nn.LayerNorm(hidden), nn.Linear(hidden, gauges))

    def forward(self, x):
        return self.head(self.gru(x)[0])


class Trainer:
    def __init__(self, model, series, callbacks, lr=2e-3, batch=24, hours=36):
        self.model, self.series, self.callbacks, self.lr = model, series, callbacks, lr
        self.batch, self.hours = batch, hours
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.criterion = nn.MSELoss()
        self.step = self.epoch = 0
        self.log = {"lr": [], "inputs": [], "gradients": [], "loss": []}
        self.spent = {"data": 0, "forward": 0, "backward": 0, "optimizer": 0}
        self.cuts = []
        model.register_forward_pre_hook(self.count_windows)
        self.windows = 0

    def count_windows(self, module, args):
        self.windows += len(args[0])

    def call(self, event, *args):
        for callback in self.callbacks:
            getattr(callback, event)(self, *args)

    def next_batch(self):
        starts = torch.randint(0, len(self.series) - self.hours - 1, (self.batch, 1))
        window = self.series[starts + torch.arange(self.hours + 1)]
        return window[:, :-1], window[:, 1:]

    def train_step(self):
        self.call("on_step_begin")
        batch = self.next_batch()
        t0 = time.monotonic_ns()
        self.call("before_forward", batch)
        t1 = time.monotonic_ns()
        x, y = batch
        self.loss = self.criterion(self.model(x), y)
        t2 = time.monotonic_ns()
        self.optimizer.zero_grad()
        t3 = time.monotonic_ns()
        self.loss.backward()
        t4 = time.monotonic_ns()
        self.call("after_backward")
        t5 = time.monotonic_ns()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        t6 = time.monotonic_ns()
        self.call("on_step_end")
        self.spent["data"] += t0 - self.cuts[-1]
        self.spent["forward"] += t2 - t1
        self.spent["backward"] += t4 - t3
        self.spent["optimizer"] += t3 - t2 + t6 - t5
        self.step += 1

    def fit(self, epochs, steps):
        self.cuts.append(time.monotonic_ns())
        for self.epoch in range(epochs):
            self.call("on_epoch_begin")
            for _ in range(steps):
                self.train_step()
                self.cuts.append(time.monotonic_ns())
            self.call("on_epoch_end")


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(2)
    t = torch.arange(20_000).unsqueeze(1) / 12.42
    series = torch.sin(t * 6.283 + torch.arange(6)) + 0.3 * torch.sin(t * 3.1) + 0.05 * torch.randn(20_000, 6)
    trainer = Trainer(TideNet(), series, [WarmUp(30), LogRate(), LogInputs(), LogGradients(), Progress(), History()])
    trainer.fit(2, 80)
    write(
        tile(trainer.cuts),
        unit="optimizer update",
        levels={"epoch": 2},
        limiting="operators",
        phases_ns=trainer.spent,
    )
