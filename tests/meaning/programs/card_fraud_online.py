"""Learns to spot card fraud online: each payment is scored, then learned from, one at a time, from an endless stream.

Planted: the audit trail syncs its file after every payment, to a slow disk (3 ms, slept, beside the real fsync), though
once in 100 would do. Truth: 1200 payments, each an optimizer update; limited by input and output; the gain is 99/100 of
the measured time of syncing. The score comes from the very forward pass that is learned from.
"""

import itertools
import json
import os
import random
import tempfile
from time import monotonic_ns, sleep

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset
from truth import problem, tile, write

SHOPS, COUNTRIES = 400, 40


class Payments(IterableDataset):
    """Payments of made-up customers with habits; a few cards are stolen and used abroad."""

    def __init__(self, seed=1, customers=500):
        self.random = random.Random(seed)
        self.habits = [(self.random.randrange(SHOPS), self.random.randrange(COUNTRIES)) for _ in range(customers)]

    def __iter__(self):
        for number in itertools.count():
            customer = self.random.randrange(len(self.habits))
            shop, country = self.habits[customer]
            fraud = self.random.random() < 0.08
            if fraud:
                country = self.random.randrange(COUNTRIES)
            home = self.habits[customer][1]
            amount = self.random.lognormvariate(4.5 if fraud else 3.0, 0.8)
            hour = self.random.gauss(3 if fraud else 14, 3) % 24
            yield {
                "number": number, "customer": customer, "places": torch.tensor([shop, SHOPS + country, SHOPS + home]),
                "numbers": torch.tensor([amount / 50, hour / 24, float(country != home)]), "fraud": float(fraud),
            }  # fmt: skip


class FraudNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.places = nn.Embedding(SHOPS + COUNTRIES, 24)
        self.tower = nn.Sequential(nn.Linear(75, 160), nn.ReLU(), nn.Linear(160, 160), nn.ReLU(), nn.Linear(160, 1))

    def forward(self, places, numbers):
        return self.tower(torch.cat([self.places(places).flatten(), numbers]))


class AuditTrail:
    def __init__(self, path):
        self.file, self.syncing = open(path, "w"), 0

    def record(self, payment, score):
        line = {"payment": payment["number"], "customer": payment["customer"], "score": round(score, 4)}
        self.file.write(json.dumps(line) + "\n")
        self.sync()

    def sync(self):
        begin = monotonic_ns()
        self.file.flush()
        os.fsync(self.file.fileno())
        sleep(0.003)
        self.syncing += monotonic_ns() - begin


class Prequential:
    """How often the alarm was right, with slow forgetting."""

    def __init__(self):
        self.caught = self.cried = self.frauds = 0.0

    def add(self, score, fraud):
        alarm = score > 0.3
        self.caught = 0.998 * self.caught + (alarm and fraud > 0)
        self.cried = 0.998 * self.cried + alarm
        self.frauds = 0.998 * self.frauds + fraud


def main(folder, payments=1200):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model, quality, trail = FraudNet(), Prequential(), AuditTrail(os.path.join(folder, "audit.jsonl"))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
    criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([4.0]))
    spent = dict.fromkeys(("data", "forward", "backward", "optimizer"), 0)
    stream = DataLoader(Payments(), batch_size=None)
    cuts = [monotonic_ns()]
    for payment in itertools.islice(stream, payments):
        label = torch.tensor([payment["fraud"]])
        t0 = monotonic_ns()
        logit = model(payment["places"], payment["numbers"])
        loss = criterion(logit, label)
        t1 = monotonic_ns()
        score = torch.sigmoid(logit).item()
        quality.add(score, payment["fraud"])
        trail.record(payment, score)
        t2 = monotonic_ns()
        loss.backward()
        t3 = monotonic_ns()
        optimizer.step()
        optimizer.zero_grad()
        t4 = monotonic_ns()
        spans = (t0 - cuts[-1], t1 - t0, t3 - t2, t4 - t3)
        spent = {name: ns + span for (name, ns), span in zip(spent.items(), spans, strict=True)}
        if payment["number"] % 300 == 299:
            print(f"{payment['number']}: caught {quality.caught:.0f} of {quality.frauds:.0f}, {quality.cried:.0f}")
        cuts.append(monotonic_ns())
    where, wasted = "card_fraud_online.py:AuditTrail.sync", trail.syncing * 99 // 100
    write(
        tile(cuts),
        unit="payment (one optimizer update)",
        limiting="io",
        phases_ns=spent,
        problem=problem("the audit trail is synced after every payment", where, "io", wasted_ns=wasted),
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(place)
