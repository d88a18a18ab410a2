"""A data loader with two workers that start anew in each of two epochs; the data set computes its images."""

import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rings(Dataset):
    def __len__(self):
        return 240

    def __getitem__(self, index):
        radius = 1 + index % 5
        grid = torch.stack(torch.meshgrid(torch.arange(14.0), torch.arange(14.0), indexing="ij")) - 6.5
        ring = ((grid.norm(dim=0) - radius).abs() < 0.7).float()
        return (ring + 0.1 * torch.randn(14, 14)).unsqueeze(0), index % 5


def main():
    torch.manual_seed(38)
    loader = DataLoader(Rings(), batch_size=8, shuffle=True, num_workers=2, drop_last=True)
    model = nn.Sequential(nn.Conv2d(1, 8, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(200, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
    begins = []
    for epoch in range(2):
        correct = seen = 0
        for images, labels in loader:
            begins.append(time.monotonic_ns())
            scores = model(images)
            loss = nn.functional.cross_entropy(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            correct += (scores.argmax(1) == labels).sum().item()
            seen += len(labels)
        print(f"epoch {epoch}: {correct / seen:.2f}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
