"""Adversarial training: five steps of projected gradients make each batch harder, then the weights are updated; clean
and robust accuracy after every epoch. The step is an update with the attack before it.
"""

import os
import time

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset, random_split
from tqdm import tqdm

EPSILON, ALPHA, ATTACK_STEPS = 0.3, 0.1, 5


class SmallResNet(nn.Module):
    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.conv1, self.norm1 = nn.Conv2d(width, width, 3, padding=1), nn.GroupNorm(4, width)
            self.conv2, self.norm2 = nn.Conv2d(width, width, 3, padding=1), nn.GroupNorm(4, width)

        def forward(self, x):
            y = functional.relu(self.norm1(self.conv1(x)))
            return functional.relu(x + self.norm2(self.conv2(y)))

    def __init__(self, classes, width=8, depth=2):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(*(self.Block(width) for _ in range(depth)))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean(dim=(2, 3)))


class PGD:
    def __init__(self, model, epsilon, alpha, steps):
        self.model, self.epsilon, self.alpha, self.steps = model, epsilon, alpha, steps

    def __call__(self, images, labels):
        training = self.model.training
        self.model.eval()
        adversarial = images + torch.empty_like(images).uniform_(-self.epsilon, self.epsilon)
        for _ in range(self.steps):
            adversarial.requires_grad_(True)
            loss = functional.cross_entropy(self.model(adversarial), labels)
            (gradient,) = torch.autograd.grad(loss, adversarial)
            adversarial = adversarial.detach() + self.alpha * gradient.sign()
            adversarial = images + (adversarial - images).clamp(-self.epsilon, self.epsilon)
        self.model.train(training)
        return adversarial


def textures(count, classes, side=16):
    labels = torch.randint(classes, (count,))
    angle = torch.pi * labels / classes
    axis = torch.arange(side) - side / 2
    along = angle.cos()[:, None, None] * axis[:, None] + angle.sin()[:, None, None] * axis
    images = torch.sin(along + 6 * torch.rand(count, 1, 1)) + 0.2 * torch.randn(count, side, side)
    return TensorDataset(images.unsqueeze(1), labels)


def evaluate(model, attack, loader):
    model.eval()
    clean = robust = count = 0
    for images, labels in loader:
        with torch.no_grad():
            clean += (model(images).argmax(1) == labels).sum().item()
        hard = attack(images, labels)
        with torch.no_grad():
            robust += (model(hard).argmax(1) == labels).sum().item()
        count += len(labels)
    return clean / count, robust / count


def main():
    torch.manual_seed(58)
    train_set, test_set = random_split(textures(400, classes=4), [336, 64])
    train_loader = DataLoader(train_set, batch_size=16, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=32)
    model = SmallResNet(classes=4)
    attack = PGD(model, EPSILON, ALPHA, ATTACK_STEPS)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2], gamma=0.1)
    begins = []
    for epoch in range(3):
        model.train()
        progress = tqdm(train_loader, desc=f"epoch {epoch}", mininterval=1.0)
        for images, labels in progress:
            begins.append(time.monotonic_ns())
            hard = attack(images, labels)
            loss = functional.cross_entropy(model(hard), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            progress.set_postfix(loss=f"{loss.item():.3f}", refresh=False)
        scheduler.step()
        clean, robust = evaluate(model, attack, test_loader)
        print(f"epoch {epoch}: clean {clean:.2f}, robust {robust:.2f}")
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"update {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
