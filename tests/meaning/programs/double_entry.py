"""A ledger with double entries: each transfer posts twice, a debit and a credit, to a journal on disk.

Every posting writes a line whose hash continues the chain, and syncs the file; the disk is a slow one (4 ms, slept,
beside the real fsync). After each transfer the books are balanced by a pass over all accounts.
Planted: `post` syncs for itself, though one sync for 50 transfers would do. Truth: 300 transfers, each with two calls
of `post`; limited by input and output; the gain is the measured time of syncing less the 1 in 100 that stay.
"""

import hashlib
import os
import random
import tempfile
import time
from pathlib import Path

from truth import problem, tile, write

TRANSFERS, ACCOUNTS = 300, 3000


class Journal:
    def __init__(self, path):
        self.file = open(path, "w")
        self.chain = b""
        self.lines = 0
        self.syncing = 0

    def post(self, balances, account, amount, text):
        balances[account] = balances.get(account, 0) + amount
        line = f"{self.lines};{account};{amount};{text}"
        self.chain = hashlib.sha256(self.chain + line.encode()).digest()
        self.file.write(f"{line};{self.chain.hex()}\n")
        self.lines += 1
        began = time.monotonic_ns()
        self.file.flush()
        os.fsync(self.file.fileno())
        time.sleep(0.004)  # the slow disk
        self.syncing += time.monotonic_ns() - began

    def close(self):
        self.file.close()


def balanced(balances):
    debit = credit = 0
    for amount in balances.values():
        if amount < 0:
            debit -= amount
        else:
            credit += amount
    return debit == credit


def main():
    rng = random.Random(9)
    balances = dict.fromkeys(range(ACCOUNTS), 0)
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(Path(folder, "journal.csv"))
        cuts = [time.monotonic_ns()]
        for number in range(TRANSFERS):
            payer, payee = rng.sample(range(ACCOUNTS), 2)
            cents = rng.randint(1, 100_000)
            journal.post(balances, payer, -cents, f"transfer {number}")
            journal.post(balances, payee, cents, f"transfer {number}")
            if not balanced(balances):
                raise ValueError(f"out of balance after transfer {number}")
            cuts.append(time.monotonic_ns())
        journal.close()
    print(f"{journal.lines} lines, chain {journal.chain.hex()[:12]}, owed {sum(map(abs, balances.values())) / 200:.2f}")
    write(
        tile(cuts, "transfer"),
        unit="transfer",
        limiting="io",
        levels={"posting": 2 * TRANSFERS},
        phases_ns={"sync": journal.syncing},
        problem=problem(
            "each posting syncs the journal for itself",
            "double_entry.py:Journal.post",
            "io",
            wasted_ns=journal.syncing * 99 // 100,
        ),
    )


if __name__ == "__main__":
    main()
