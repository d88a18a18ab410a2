"""Predicts the energies of small made-up molecules with a message-passing network written by hand, in one script.

Planted: `Messages.forward` gathers and sums up each atom's neighbours in a loop over atoms, a thousand tiny operators,
to which autograd adds others that write into a whole array of zeros each. Truth: 60 updates in 3 epochs; limited by
operators, tiny ones (one may say python, which calls them, or launch); the gain is measured: the same updates with one
`index_add`, run after the loop.
"""

import random
from statistics import median
from time import monotonic_ns

import torch
from torch import nn
from truth import problem, tile, write

KINDS = "CNOFHS"


class Molecule:
    def __init__(self, rng):
        count = rng.randint(9, 22)
        self.atoms = [rng.randrange(len(KINDS)) for _ in range(count)]
        bonds = {(rng.randrange(i), i) for i in range(1, count)}
        bonds |= {tuple(sorted(rng.sample(range(count), 2))) for _ in range(count // 4)}
        self.neighbours = [[] for _ in range(count)]
        for a, b in bonds:
            self.neighbours[a].append(b)
            self.neighbours[b].append(a)
        self.energy = sum(0.3 * (self.atoms[a] - self.atoms[b]) ** 2 - 1 for a, b in bonds) / 10


class Batch:
    """Several molecules as one graph of many parts."""

    def __init__(self, molecules):
        self.neighbours, atoms, owner, first = [], [], [], 0
        for number, molecule in enumerate(molecules):
            atoms += molecule.atoms
            owner += [number] * len(molecule.atoms)
            self.neighbours += [torch.tensor(near) + first for near in molecule.neighbours]
            first += len(molecule.atoms)
        self.atoms, self.owner, self.count = torch.tensor(atoms), torch.tensor(owner), len(molecules)
        self.energy = torch.tensor([molecule.energy for molecule in molecules])


class Messages(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.send, self.update = nn.Linear(width, width), nn.GRUCell(width, width)

    def forward(self, h, neighbours):
        sent = torch.relu(self.send(h))
        heard = torch.stack([sent[near].sum(0) for near in neighbours])
        return self.update(heard, h)


class MessagesAtOnce(Messages):
    def forward(self, h, neighbours):
        sent = torch.relu(self.send(h))
        near = torch.cat(neighbours)
        atom = torch.arange(len(neighbours)).repeat_interleave(torch.tensor([len(n) for n in neighbours]))
        return self.update(torch.zeros_like(h).index_add(0, atom, sent[near]), h)


class EnergyNet(nn.Module):
    def __init__(self, messages, width=128, rounds=3):
        super().__init__()
        self.embed = nn.Embedding(len(KINDS), width)
        self.rounds = nn.ModuleList(messages(width) for _ in range(rounds))
        self.read = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, batch):
        h = self.embed(batch.atoms)
        for messages in self.rounds:
            h = messages(h, batch.neighbours)
        return torch.zeros(batch.count).index_add(0, batch.owner, self.read(h).squeeze(1))


torch.manual_seed(0)
torch.set_num_threads(1)
rng = random.Random(0)
molecules = [Molecule(rng) for _ in range(480)]
model = EnergyNet(Messages)
optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-4)
times = dict.fromkeys(("data", "forward", "backward", "optimizer"), 0)
cuts = [monotonic_ns()]
for epoch in range(3):
    rng.shuffle(molecules)
    wrong = 0.0
    for start in range(0, len(molecules), 24):
        batch = Batch(molecules[start : start + 24])
        t0 = monotonic_ns()
        predicted = model(batch)
        loss = nn.functional.huber_loss(predicted, batch.energy)
        t1 = monotonic_ns()
        loss.backward()
        t2 = monotonic_ns()
        optimizer.step()
        optimizer.zero_grad()
        t3 = monotonic_ns()
        wrong += loss.item()
        times["data"] += t0 - cuts[-1]
        times["forward"] += t1 - t0
        times["backward"] += t2 - t1
        times["optimizer"] += t3 - t2
        cuts.append(monotonic_ns())
    print(f"epoch {epoch}: {wrong / 20:.4f}")

spans = []
for messages in (Messages, MessagesAtOnce) * 8:  # in turns, as other programs may run beside this one
    model = EnergyNet(messages)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-4)
    begin = monotonic_ns()
    batch = Batch(molecules[:24])
    nn.functional.huber_loss(model(batch), batch.energy).backward()
    optimizer.step()
    optimizer.zero_grad()
    spans.append(monotonic_ns() - begin)
saved = 1 - median(spans[1::2]) / median(spans[::2])
write(
    tile(cuts),
    unit="optimizer update",
    levels={"epoch": 3},
    limiting="operators",
    limiting_also=["python", "launch"],
    phases_ns=times,
    problem=problem(
        "neighbours are summed up atom by atom",
        "molecule_messages.py:Messages.forward",
        "operators",
        wasted_ns=int(saved * (cuts[-1] - cuts[0])),
    ),
)
