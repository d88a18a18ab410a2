"""Segmentation of blobs with a small U-Net: two loader workers, Dice and cross-entropy, validation after each epoch,
the best weights are saved. The step is a batch of training.
"""

import logging
import os
import tempfile
import time
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

log = logging.getLogger("unet")


@dataclass
class Config:
    epochs: int = 4
    batch_size: int = 6
    side: int = 32
    lr: float = 3e-3
    workers: int = 2


class Blobs(Dataset):
    """Grey images with one to three bright ellipses, and their masks."""

    def __init__(self, count, side, seed):
        self.count, self.side, self.seed = count, side, seed

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        draw = torch.Generator().manual_seed(self.seed + index)
        axis = torch.arange(self.side, dtype=torch.float32)
        mask = torch.zeros(self.side, self.side)
        for _ in range(int(torch.randint(1, 4, (1,), generator=draw))):
            y, x = torch.rand(2, generator=draw) * self.side
            a, b = 3 + 5 * torch.rand(2, generator=draw)
            mask[((axis[:, None] - y) / a) ** 2 + ((axis - x) / b) ** 2 < 1] = 1
        image = 0.6 * mask + 0.4 * torch.randn(self.side, self.side, generator=draw)
        return image[None], mask[None]


def block(inside, outside):
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, padding=1, bias=False),
        nn.BatchNorm2d(outside),
        nn.ReLU(inplace=True),
        nn.Conv2d(outside, outside, 3, padding=1, bias=False),
        nn.BatchNorm2d(outside),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, widths=(8, 16, 32)):
        super().__init__()
        self.downs, self.ups, self.merges = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        before = 1
        for width in widths:
            self.downs.append(block(before, width))
            before = width
        for width in reversed(widths[:-1]):
            self.ups.append(nn.ConvTranspose2d(before, width, 2, stride=2))
            self.merges.append(block(2 * width, width))
            before = width
        self.head = nn.Conv2d(before, 1, 1)

    def forward(self, x):
        skips = []
        for depth, down in enumerate(self.downs):
            x = down(x if depth == 0 else functional.max_pool2d(x, 2))
            skips.append(x)
        for up, merge, skip in zip(self.ups, self.merges, reversed(skips[:-1]), strict=True):
            x = merge(torch.cat([skip, up(x)], dim=1))
        return self.head(x)


def dice(logits, mask, smooth=1.0):
    p = torch.sigmoid(logits).flatten(1)
    mask = mask.flatten(1)
    return ((2 * (p * mask).sum(1) + smooth) / (p.sum(1) + mask.sum(1) + smooth)).mean()


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    scores = [dice(model(image), mask).item() for image, mask in loader]
    model.train()
    return sum(scores) / len(scores)


def main():
    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    config = Config()
    torch.manual_seed(51)
    train = DataLoader(
        Blobs(72, config.side, 1000),
        config.batch_size,
        shuffle=True,
        num_workers=config.workers,
        persistent_workers=True,
    )
    held_out = DataLoader(Blobs(18, config.side, 9000), config.batch_size)
    model = UNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=1)
    begins, best = [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(config.epochs):
            total = 0.0
            for image, mask in train:
                begins.append(time.monotonic_ns())
                logits = model(image)
                loss = functional.binary_cross_entropy_with_logits(logits, mask) + 1 - dice(logits, mask)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                total += loss.item()
            score = evaluate(model, held_out)
            scheduler.step(score)
            log.info("epoch %d: loss %.3f, dice %.3f", epoch, total / len(train), score)
            if score > best:
                best = score
                torch.save(model.state_dict(), os.path.join(folder, "best.pt"))
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
