"""Transfer learning: a frozen convolutional backbone and a trained linear head, on the same 480 pictures every epoch.

Truth: 75 updates (5 epochs of 15), limited by operators. Pictures are neither augmented nor changed, yet the frozen
backbone computes their features again in each epoch; keeping those of the first epoch would save the rest (measured).
"""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from truth import problem, tile, write


def conv_block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True), nn.MaxPool2d(2))


class MushroomNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.Sequential(conv_block(3, 24), conv_block(24, 48), conv_block(48, 96), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Sequential(nn.Linear(96, 64), nn.ReLU(), nn.Linear(64, classes))
        for p in self.backbone.parameters():
            p.requires_grad = False
        self.backbone.eval()
        self.backbone_ns = []

    def forward(self, x):
        begin = time.monotonic_ns()
        with torch.no_grad():
            features = self.backbone(x)
        self.backbone_ns.append(time.monotonic_ns() - begin)
        return self.head(features)


def main(epochs=5):
    torch.manual_seed(4)
    torch.set_num_threads(1)
    pictures = TensorDataset(torch.rand(480, 3, 56, 56), torch.randint(0, 9, (480,)))
    loader = DataLoader(pictures, batch_size=32, shuffle=True)
    net = MushroomNet(9)
    optimizer = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=3e-3)
    criterion = nn.CrossEntropyLoss()
    data = forward = backward = optim = 0
    cuts = [time.monotonic_ns()]
    for epoch in range(epochs):
        correct = 0
        for images, labels in loader:
            a = time.monotonic_ns()
            optimizer.zero_grad()
            b = time.monotonic_ns()
            logits = net(images)
            loss = criterion(logits, labels)
            c = time.monotonic_ns()
            loss.backward()
            d = time.monotonic_ns()
            optimizer.step()
            e = time.monotonic_ns()
            correct += (logits.argmax(1) == labels).sum().item()
            data += a - cuts[-1]
            optim += b - a + e - d
            forward += c - b
            backward += d - c
            cuts.append(time.monotonic_ns())
        print(f"epoch {epoch + 1}: accuracy {correct / len(pictures):.3f}")
    write(
        tile(cuts),
        unit="optimizer update",
        levels={"epoch": epochs},
        limiting="operators",
        phases_ns={"data": data, "forward": forward, "backward": backward, "optimizer": optim},
        problem=problem(
            "the frozen backbone computes the same features again in every epoch",
            "mushroom_transfer.py:MushroomNet.forward",
            "operators",
            wasted_ns=sum(net.backbone_ns[len(loader) :]),
        ),
    )


if __name__ == "__main__":
    main()
