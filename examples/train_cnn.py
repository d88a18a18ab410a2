"""Train a small CNN on synthetic images: loader workers, validation, checkpoints, and a data set that stalls at times.

    python train_cnn.py --steps 500 --seed 1 --truth truth.json

`--truth` writes what really happened, as the loop itself saw it (CLOCK_MONOTONIC, nanoseconds): a tool that claims to
find the training steps from outside can be checked against it. A step begins when the loop asks for the next batch and
ends at the end of the loop's body.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

CLASSES = 10
STALL_EVERY = 37  # batches: one in so many lies on a cold shard
STALL_AT = 18  # which of them


class Images(Dataset):
    """Random 3x32x32 images with labels that can be learned; sample i is the same in every run with the same seed.

    The last sample of one batch in STALL_EVERY takes `stall_s` seconds to read, as if fetched from far away.
    """

    def __init__(self, samples, batch, seed, stall_s=0.0):
        self.samples, self.batch, self.seed, self.stall_s = samples, batch, seed, stall_s

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        batch, place = divmod(index, self.batch)
        if self.stall_s and batch % STALL_EVERY == STALL_AT and place == self.batch - 1:
            time.sleep(self.stall_s)
        label = index % CLASSES
        noise = torch.randn(3, 32, 32, generator=torch.Generator().manual_seed(self.seed * 1_000_003 + index))
        noise[label % 3, label * 3 : label * 3 + 3] += 0.35
        return noise, label


class Net(nn.Module):
    """Three convolutions and two linear layers, 0.4 million parameters."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.classify = nn.Sequential(nn.Linear(64 * 4 * 4, 384), nn.ReLU(), nn.Dropout(0.1), nn.Linear(384, CLASSES))

    def forward(self, images):
        return self.classify(self.features(images).flatten(1))


def train_step(model, optimizer, images, labels):
    optimizer.zero_grad()
    loss = functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss.detach()


@torch.no_grad()
def validate(model, loader):
    """Return the share of right answers."""
    model.eval()
    right = total = 0
    for images, labels in loader:
        right += (model(images).argmax(1) == labels).sum().item()
        total += len(labels)
    model.train()
    return right / total


def save_checkpoint(model, optimizer, step, folder):
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, folder / "last.pt")


def epochs(loader):
    """Yield batches for ever, one pass over the data after the other."""
    while True:
        yield from loader


def train(model, optimizer, training, validation, folder, options):
    """Run the loop; return the true steps."""
    truth = []
    batches = epochs(training)
    for step in range(options.steps):
        kind = ["train"]
        start_ns = time.monotonic_ns()
        images, labels = next(batches)
        waited_ns = time.monotonic_ns() - start_ns
        loss = train_step(model, optimizer, images, labels)
        if (step + 1) % options.validate_every == 0:
            accuracy = validate(model, validation)
            print(f"step {step + 1}: loss {loss.item():.3f}, accuracy {accuracy:.1%}")
            kind.append("validation")
        if (step + 1) % options.checkpoint_every == 0:
            save_checkpoint(model, optimizer, step, folder)
            kind.append("checkpoint")
        stalled = step % len(training) % STALL_EVERY == STALL_AT
        end_ns = time.monotonic_ns()
        truth.append(
            {"start_ns": start_ns, "end_ns": end_ns, "wait_ns": waited_ns, "kind": "+".join(kind), "stalled": stalled}
        )
    return truth


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epoch-steps", type=int, default=4 * STALL_EVERY, help="batches in one pass over the data")
    parser.add_argument("--validate-every", type=int, default=25, metavar="STEPS")
    parser.add_argument("--checkpoint-every", type=int, default=60, metavar="STEPS")
    parser.add_argument("--stall-ms", type=float, default=200.0, help="how long the slow sample takes; 0 for none")
    parser.add_argument("--checkpoints", type=Path, metavar="FOLDER", help="default: a temporary folder")
    parser.add_argument("--truth", type=Path, metavar="FILE", help="write the true steps as JSON")
    return parser.parse_args()


def main():
    options = parse_arguments()
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)  # the loader's workers want the other cores

    images = Images(options.epoch_steps * options.batch, options.batch, options.seed, options.stall_ms / 1e3)
    training = DataLoader(
        images, options.batch, num_workers=options.workers, persistent_workers=options.workers > 0, drop_last=True
    )
    validation = DataLoader(Images(4 * options.batch, options.batch, options.seed + 1), options.batch)

    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    with tempfile.TemporaryDirectory() as scratch:
        truth = train(model, optimizer, training, validation, options.checkpoints or Path(scratch), options)
    if options.truth:
        body = {"clock": "CLOCK_MONOTONIC", "seed": options.seed, "steps": truth}
        options.truth.write_text(json.dumps(body, indent=1) + "\n")


if __name__ == "__main__":
    main()
