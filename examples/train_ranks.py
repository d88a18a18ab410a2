"""Train a small network on several ranks (DDP with gloo); one of them reads its data from a slow place.

    torchrun --standalone --nproc-per-node 4 train_ranks.py --slow-rank 2

Nothing in the program mentions it, except this: reading a batch takes `--slow-ms` longer on `--slow-rank`.
"""

import argparse
import time

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

BATCH, FEATURES, CLASSES = 32, 128, 10


def read_shard(generator, stall_s):
    """Return one batch of this rank's part of the data."""
    if stall_s:
        time.sleep(stall_s)
    return torch.randn(BATCH, FEATURES, generator=generator), torch.randint(CLASSES, (BATCH,), generator=generator)


def train_step(model, optimizer, inputs, labels):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss.detach()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--slow-rank", type=int, default=2, help="-1 for none")
    parser.add_argument("--slow-ms", type=float, default=20.0)
    return parser.parse_args()


def main():
    options = parse_arguments()
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    torch.manual_seed(1)  # the same network on every rank

    model = nn.Sequential(nn.Linear(FEATURES, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, CLASSES))
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(rank)
    stall_s = options.slow_ms / 1e3 if rank == options.slow_rank else 0.0
    for step in range(options.steps):
        inputs, labels = read_shard(generator, stall_s)
        loss = train_step(model, optimizer, inputs, labels)
        if rank == 0 and (step + 1) % 20 == 0:
            print(f"step {step + 1}: loss {loss.item():.3f}")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
