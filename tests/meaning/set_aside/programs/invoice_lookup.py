"""Settles invoices against a bank's payments in SQLite: for each invoice its payments are found, summed and marked.

Planted: nobody has made an index on the payments' reference, so that each lookup reads the whole table. The database
fits in SQLite's cache, so the disk is not waited for; every 80th invoice commits, by `commit`. Truth: 560 invoices, of
which 7 commit; limited by operators (SQLite's native scan); the gain is measured: the time of the lookups beyond that
of the same lookups with an index, made and asked after the loop.
"""

import random
import sqlite3
import time

from truth import problem, tile, write

LOOKUP = "SELECT id, cents FROM payments WHERE reference = ?"


class Ledger:
    def __init__(self, path, payments=150_000, invoices=560):
        rng = random.Random(12)
        self.db = sqlite3.connect(path, isolation_level="DEFERRED")
        self.db.execute("PRAGMA cache_size = -64000")
        self.db.execute("CREATE TABLE payments (id INTEGER PRIMARY KEY, reference TEXT, cents INTEGER, invoice TEXT)")
        references = [f"RE-2023-{rng.randrange(10**6):06}" for _ in range(payments // 3)]
        rows = [(rng.choice(references), rng.randrange(500, 90_000)) for _ in range(payments)]
        self.db.executemany("INSERT INTO payments (reference, cents) VALUES (?, ?)", rows)
        self.db.commit()
        self.invoices = [(f"F{i:05}", reference) for i, reference in enumerate(rng.sample(references, invoices))]
        self.balance = {}
        self.looking = 0

    def commit(self, done):
        self.db.commit()
        print(f"{done} of {len(self.invoices)} settled, {sum(self.balance.values()) / 100:.2f} received")

    def settle(self):
        cuts = [time.monotonic_ns()]
        for done, (number, reference) in enumerate(self.invoices, start=1):
            began = time.monotonic_ns()
            found = self.db.execute(LOOKUP, (reference,)).fetchall()
            self.looking += time.monotonic_ns() - began
            self.balance[number] = sum(cents for _, cents in found)
            self.db.executemany("UPDATE payments SET invoice = ? WHERE id = ?", [(number, row) for row, _ in found])
            if done % 80 == 0:
                self.commit(done)
            cuts.append(time.monotonic_ns())
        return cuts

    def indexed(self):
        """How long the same lookups take with an index, in ns."""
        self.db.execute("CREATE INDEX by_reference ON payments (reference)")
        began = time.monotonic_ns()
        for _, reference in self.invoices:
            self.db.execute(LOOKUP, (reference,)).fetchall()
        return time.monotonic_ns() - began


ledger = Ledger("bank.db")
cuts = ledger.settle()
write(
    tile(cuts, lambda i: "invoice" if (i + 1) % 80 else "invoice+commit"),
    unit="invoice",
    limiting="operators",
    problem=problem(
        "no index on the reference: each lookup scans the whole table",
        "invoice_lookup.py:Ledger.settle",
        "operators",
        wasted_ns=ledger.looking - ledger.indexed(),
    ),
)
