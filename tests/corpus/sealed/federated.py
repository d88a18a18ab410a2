"""Federated averaging, simulated: in each round three of ten clients train a copy of the model on data of their own, of
different amounts, and the server averages their weights; it tests the average every fifth round.
"""

import copy
import os
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rounds, updates = [], []


class Client:
    def __init__(self, number, data, epochs=1, batch_size=10, lr=0.05):
        self.number, self.data, self.epochs, self.lr = number, data, epochs, lr
        self.loader = DataLoader(data, batch_size=batch_size, shuffle=True)

    def __len__(self):
        return len(self.data)

    def train(self, model):
        model = copy.deepcopy(model)
        model.train()
        optimizer = torch.optim.SGD(model.parameters(), lr=self.lr, momentum=0.9)
        for _ in range(self.epochs):
            for x, y in self.loader:
                updates.append(time.monotonic_ns())
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
        return model.state_dict()


class Server:
    def __init__(self, model, clients, test_data, share=0.3):
        self.model, self.clients = model, clients
        self.share, self.test_loader = share, DataLoader(test_data, batch_size=50)

    def aggregate(self, answers):
        total = sum(size for size, _ in answers)
        average = {name: torch.zeros_like(value) for name, value in self.model.state_dict().items()}
        for size, weights in answers:
            for name, value in weights.items():
                average[name] += value * (size / total)
        self.model.load_state_dict(average)

    def round(self):
        chosen = random.sample(self.clients, max(1, int(self.share * len(self.clients))))
        answers = []
        for client in chosen:
            try:
                answers.append((len(client), client.train(self.model)))
            except RuntimeError as error:
                print(f"client {client.number} dropped out: {error}")
        self.aggregate(answers)

    @torch.no_grad()
    def test(self):
        self.model.eval()
        hits = sum((self.model(x).argmax(1) == y).sum().item() for x, y in self.test_loader)
        return hits / len(self.test_loader.dataset)


def split_by_label(x, y, clients, labels_each=2):
    """Every client sees few of the labels only."""
    data = []
    for _ in range(clients):
        mine = torch.isin(y, torch.tensor(random.sample(range(5), labels_each))).nonzero().squeeze(1)
        rows = mine[torch.randperm(len(mine))[: random.randint(25, 75)]]
        data.append(TensorDataset(x[rows], y[rows]))
    return data


def main():
    random.seed(59)
    torch.manual_seed(59)
    x = torch.randn(1200, 20)
    y = (x @ torch.randn(20, 5)).argmax(1)
    clients = [Client(number, data) for number, data in enumerate(split_by_label(x[:1000], y[:1000], 10))]
    model = nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 5))
    server = Server(model, clients, TensorDataset(x[1000:], y[1000:]))
    for number in range(1, 31):
        rounds.append(time.monotonic_ns())
        server.round()
        if number % 5 == 0:
            print(f"round {number}: accuracy {server.test():.3f}")
    # A round is what is counted and compared; a client's update is where the time goes, and as good a step.
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"round {ns}\n" for ns in rounds)
        out.writelines(f"update {ns}\n" for ns in updates)


if __name__ == "__main__":
    main()
