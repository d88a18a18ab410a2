"""A small trainer class for digit-like images that keeps a running confusion matrix and top-3 accuracy.

Truth: 320 updates in 4 epochs. After each update `Metrics.add` goes through the batch sample by sample with `.item()` and
`.tolist()`, more than half of the time; on whole tensors it would cost about nothing, so that the gain is its measured time.
The limit is Python; many tiny operators called one by one may as well be called launch or operators.
"""

import time

import torch
from torch import nn
from truth import problem, tile, write

torch.set_num_threads(1)
torch.manual_seed(2)


class Metrics:
    def __init__(self, classes):
        self.confusion = [[0] * classes for _ in range(classes)]
        self.top3 = 0
        self.confidence = 0.0
        self.seen = 0

    def add(self, logits, target):
        for i in range(target.shape[0]):
            predicted = logits[i].argmax().item()
            actual = target[i].item()
            self.confusion[actual][predicted] += 1
            self.confidence += logits[i].softmax(0).max().item()
            if actual in logits[i].topk(3).indices.tolist():
                self.top3 += 1
            self.seen += 1

    def accuracy(self):
        return sum(row[i] for i, row in enumerate(self.confusion)) / self.seen


class Trainer:
    def __init__(self, images, labels, batch_size=256):
        self.images, self.labels, self.batch_size = images, labels, batch_size
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)
        self.loss = nn.CrossEntropyLoss()
        self.t = dict.fromkeys(("data", "forward", "backward", "optimizer", "metrics"), 0)
        self.cuts = []

    def batches(self):
        order = torch.randperm(len(self.images))
        for chunk in order.split(self.batch_size):
            yield self.images[chunk], self.labels[chunk]

    def fit(self, epochs):
        now, t = time.monotonic_ns, self.t
        self.cuts.append(now())
        for epoch in range(epochs):
            metrics = Metrics(10)
            for x, y in self.batches():
                a = now()
                logits = self.net(x)
                loss = self.loss(logits, y)
                b = now()
                self.opt.zero_grad()
                c = now()
                loss.backward()
                d = now()
                self.opt.step()
                e = now()
                metrics.add(logits.detach(), y)
                f = now()
                t["data"] += a - self.cuts[-1]
                t["forward"] += b - a
                t["backward"] += d - c
                t["optimizer"] += c - b + e - d
                t["metrics"] += f - e
                self.cuts.append(f)
            print(f"epoch {epoch}: accuracy {metrics.accuracy():.3f}, top-3 {metrics.top3 / metrics.seen:.3f}")
        return metrics.accuracy()


centres = torch.randn(10, 1, 28, 28)
labels = torch.randint(0, 10, (80 * 256,))
images = centres[labels] + 3 * torch.randn(len(labels), 1, 28, 28)
trainer = Trainer(images, labels)
final = trainer.fit(4)
assert final > 0.5 and len(trainer.cuts) == 321
write(
    tile(trainer.cuts, "train"),
    unit="optimizer update",
    limiting="python",
    limiting_also=["launch", "operators"],
    levels={"epoch": 4},
    phases_ns=trainer.t,
    problem=problem(
        "accuracy is counted sample by sample with .item()",
        "digit_trainer.py:Metrics.add",
        "python",
        wasted_ns=trainer.t["metrics"],
    ),
)
