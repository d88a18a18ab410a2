# run: torchrun --nproc_per_node 2
"""An MLP on made-up digits, trained by DistributedDataParallel (gloo) as the tutorial does it.

Healthy: both ranks have the same batches, gradients are reduced while backward runs, which contains these waits.
Truth: 60 updates in 3 epochs; limited by operators, ranks are balanced.
"""

import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from truth import tile, write


class Trainer:
    def __init__(self, model, loader, optimizer, rank):
        self.model = DistributedDataParallel(model)
        self.loader, self.optimizer, self.rank = loader, optimizer, rank
        self.spent = dict.fromkeys(("data", "forward", "backward", "optimizer"), 0)
        self.cuts = []

    def run_batch(self, images, labels):
        a = time.monotonic_ns()
        self.optimizer.zero_grad()
        b = time.monotonic_ns()
        loss = F.cross_entropy(self.model(images), labels)
        c = time.monotonic_ns()
        loss.backward()
        d = time.monotonic_ns()
        self.optimizer.step()
        e = time.monotonic_ns()
        for phase, ns in (("data", a - self.cuts[-1]), ("forward", c - b), ("backward", d - c)):
            self.spent[phase] += ns
        self.spent["optimizer"] += b - a + e - d
        self.cuts.append(e)
        return loss.detach()

    def train(self, epochs):
        dist.barrier()
        self.cuts.append(time.monotonic_ns())
        for epoch in range(epochs):
            self.loader.sampler.set_epoch(epoch)
            losses = [self.run_batch(images, labels) for images, labels in self.loader]
            if self.rank == 0:
                print(f"epoch {epoch} loss {torch.stack(losses).mean():.4f}", flush=True)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    labels = torch.randint(0, 10, (20480,))
    images = 0.5 * torch.randn(20480, 784)
    images[torch.arange(20480), labels] += 3
    dataset = TensorDataset(images, labels)
    loader = DataLoader(dataset, batch_size=512, sampler=DistributedSampler(dataset))
    model = nn.Sequential(nn.Linear(784, 640), nn.ReLU(), nn.Linear(640, 640), nn.ReLU(), nn.Linear(640, 10))
    trainer = Trainer(model, loader, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), rank)
    trainer.train(epochs=3)
    dist.destroy_process_group()
    write(
        tile(trainer.cuts),
        unit="optimizer update",
        rank=rank,
        limiting="operators",
        limiting_also=["balanced"],
        levels={"epoch": 3},
        phases_ns=trainer.spent,
    )


if __name__ == "__main__":
    main()
