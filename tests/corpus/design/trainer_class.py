"""A home-made Trainer with callbacks, a meter and a cosine schedule, as many code bases have one."""

import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, weight):
        self.total += value * weight
        self.count += weight

    @property
    def mean(self):
        return self.total / max(1, self.count)


class Callback:
    def on_epoch_start(self, trainer): ...

    def on_step_end(self, trainer): ...

    def on_epoch_end(self, trainer): ...


class Progress(Callback):
    def on_step_end(self, trainer):
        if trainer.global_step % 20 == 0:
            print(f"step {trainer.global_step}: {trainer.meter.mean:.4f}")


class BestModel(Callback):
    def __init__(self):
        self.best, self.state = float("inf"), None

    def on_epoch_end(self, trainer):
        loss = trainer.evaluate()
        if loss < self.best:
            self.best = loss
            self.state = {key: value.clone() for key, value in trainer.model.state_dict().items()}


class Trainer:
    def __init__(self, model, training, validation, callbacks, epochs):
        self.model, self.training, self.validation = model, training, validation
        self.callbacks, self.epochs = callbacks, epochs
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, epochs * len(training))
        self.global_step = 0
        self.begins = []

    def call(self, hook):
        for callback in self.callbacks:
            getattr(callback, hook)(self)

    def training_step(self, batch):
        x, y = batch
        return nn.functional.binary_cross_entropy_with_logits(self.model(x).squeeze(1), y)

    def run_epoch(self):
        self.meter = Meter()
        self.model.train()
        self.call("on_epoch_start")
        for batch in self.training:
            self.begins.append(time.monotonic_ns())
            loss = self.training_step(batch)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            self.meter.update(loss.item(), len(batch[0]))
            self.global_step += 1
            self.call("on_step_end")
        self.call("on_epoch_end")

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        meter = Meter()
        for batch in self.validation:
            meter.update(self.training_step(batch).item(), len(batch[0]))
        return meter.mean

    def fit(self):
        for _ in range(self.epochs):
            self.run_epoch()


if __name__ == "__main__":
    torch.manual_seed(7)
    x = torch.randn(600, 10)
    y = (x[:, 0] * x[:, 1] > 0).float()
    training, validation = random_split(TensorDataset(x, y), [480, 120])
    network = nn.Sequential(nn.Linear(10, 48), nn.GELU(), nn.Linear(48, 48), nn.GELU(), nn.Linear(48, 1))
    trainer = Trainer(
        network, DataLoader(training, 24, shuffle=True), DataLoader(validation, 60), [Progress(), BestModel()], epochs=4
    )
    trainer.fit()
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in trainer.begins)
