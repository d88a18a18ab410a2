"""A digit classifier whose accuracy is taken on the training set itself, through the same DataLoader object.

Two functions, `train` and `accuracy`, go over one loader in turn, as quick experiments without a held-out set do.
Healthy and compute-bound. Truth: 4 epochs of 25 updates, and 4 passes of 25 batches beside them which update nothing.
"""

from time import monotonic_ns

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from truth import write


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 5), nn.Conv2d(16, 32, 5)
        self.fc1, self.fc2 = nn.Linear(512, 256), nn.Linear(256, 10)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = torch.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


steps = []
phases = dict.fromkeys(("data", "forward", "backward", "optimizer", "validation"), 0)


def train(model, loader, optimizer, criterion, last):
    for images, labels in loader:
        t = [monotonic_ns()]
        optimizer.zero_grad()
        t.append(monotonic_ns())
        loss = criterion(model(images), labels)
        t.append(monotonic_ns())
        loss.backward()
        t.append(monotonic_ns())
        optimizer.step()
        t.append(monotonic_ns())
        phases["data"] += t[0] - last
        phases["forward"] += t[2] - t[1]
        phases["backward"] += t[3] - t[2]
        phases["optimizer"] += t[1] - t[0] + t[4] - t[3]
        steps.append((last, t[4], "train"))
        last = t[4]
    return last


def accuracy(model, loader):
    right = seen = 0
    with torch.no_grad():
        for images, labels in loader:
            right += (model(images).argmax(dim=1) == labels).sum().item()
            seen += len(labels)
    return right / seen


def main():
    torch.manual_seed(5)
    torch.set_num_threads(1)
    loader = DataLoader(TensorDataset(torch.rand(2000, 1, 28, 28), torch.randint(0, 10, (2000,))), 80, shuffle=True)
    model = Net()
    optimizer = optim.RMSprop(model.parameters(), lr=1e-4)
    last = monotonic_ns()
    for epoch in range(4):
        last = train(model, loader, optimizer, nn.CrossEntropyLoss(), last)
        print(f"epoch {epoch}: {accuracy(model, loader):.2%} of the training set")
        now = monotonic_ns()
        phases["validation"] += now - last
        steps.append((last, now, "evaluation"))
        last = now


main()
levels = {"epoch": 4, "evaluation batch": 100}
write(steps, unit="optimizer update", limiting="operators", beside=["evaluation"], levels=levels, phases_ns=phases)
