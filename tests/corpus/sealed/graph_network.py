"""Node classification by a graph convolutional network: full batch, so an epoch is one update, and its validation
belongs to it; the best weights are kept, the test nodes come at the end. The step is an epoch.
"""

import copy
import os
import time

import torch
from torch import nn
from torch.nn import functional


def communities(nodes, groups, features, seed):
    """A random graph in which nodes of one group meet more often, with noisy features."""
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(groups, (nodes,), generator=draw)
    same = labels[:, None] == labels
    chance = torch.where(same, 0.03, 0.004)
    upper = torch.triu(torch.rand(nodes, nodes, generator=draw) < chance, 1)
    centres = torch.randn(groups, features, generator=draw)
    x = 0.5 * centres[labels] + torch.randn(nodes, features, generator=draw)
    return x, labels, (upper | upper.T).nonzero().T


def normalised(edges, nodes):
    loops = torch.arange(nodes).repeat(2, 1)
    edges = torch.cat([edges, loops], dim=1)
    degree = torch.bincount(edges[0], minlength=nodes).float()
    weight = (degree[edges[0]] * degree[edges[1]]).rsqrt()
    return torch.sparse_coo_tensor(edges, weight, (nodes, nodes)).coalesce()


class GraphConvolution(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inside, outside))
        self.bias = nn.Parameter(torch.zeros(outside))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adjacency):
        return torch.sparse.mm(adjacency, x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, features, hidden, classes, dropout=0.5):
        super().__init__()
        self.first, self.second = GraphConvolution(features, hidden), GraphConvolution(hidden, classes)
        self.dropout = dropout

    def forward(self, x, adjacency):
        x = functional.dropout(x, self.dropout, self.training)
        x = self.first(x, adjacency).relu()
        x = functional.dropout(x, self.dropout, self.training)
        return self.second(x, adjacency)


def train(model, optimizer, x, adjacency, labels, mask):
    model.train()
    optimizer.zero_grad()
    loss = functional.cross_entropy(model(x, adjacency)[mask], labels[mask])
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def test(model, x, adjacency, labels, *masks):
    model.eval()
    hits = model(x, adjacency).argmax(1) == labels
    return [hits[mask].float().mean().item() for mask in masks]


def main():
    torch.manual_seed(55)
    nodes, classes = 800, 5
    x, labels, edges = communities(nodes, classes, 32, seed=55)
    adjacency = normalised(edges, nodes)
    split = torch.rand(nodes)
    train_mask, validation_mask, test_mask = split < 0.2, (split >= 0.2) & (split < 0.5), split >= 0.5
    model = GCN(32, 64, classes)
    optimizer = torch.optim.Adam(
        [
            {"params": model.first.parameters(), "weight_decay": 5e-4},
            {"params": model.second.parameters(), "weight_decay": 0},
        ],
        lr=0.01,
    )
    begins, best, kept = [], 0.0, None
    for epoch in range(1, 101):
        begins.append(time.monotonic_ns())
        loss = train(model, optimizer, x, adjacency, labels, train_mask)
        (accuracy,) = test(model, x, adjacency, labels, validation_mask)
        if accuracy > best:
            best, kept = accuracy, copy.deepcopy(model.state_dict())
        if epoch % 20 == 0:
            print(f"epoch {epoch:03d}, loss {loss:.4f}, validation {accuracy:.3f}, best {best:.3f}")
    model.load_state_dict(kept)
    print("test", *test(model, x, adjacency, labels, test_mask))
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"epoch {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
