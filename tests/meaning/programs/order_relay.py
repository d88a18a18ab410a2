"""A relay between two shops: takes orders from a journal, translates them, and remembers how far it has come.

Planted: after each order `Offset.commit` writes the position to a new file, syncs it, puts it in the old one's place and
syncs the folder, though orders carry numbers and could be relayed twice without harm: once per 50 would do. The disk is
the real one, without a sleep. Truth: 400 orders; limited by io; 49 of 50 parts of the measured time of `commit` are the
gain. The journal is in memory; translating is a little Python.
"""

import hashlib
import json
import os
import tempfile
import time
from pathlib import Path

from truth import problem, tile, write

ORDERS, ENOUGH = 400, 50


class Offset:
    def __init__(self, folder):
        self.folder = folder
        self.path = folder / "offset.json"
        self.spent = 0

    def commit(self, number, digest):
        began = time.monotonic_ns()
        fresh = self.path.with_suffix(".new")
        with open(fresh, "w") as out:
            json.dump({"number": number, "digest": digest}, out)
            out.flush()
            os.fsync(out.fileno())
        os.replace(fresh, self.path)
        handle = os.open(self.folder, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
        self.spent += time.monotonic_ns() - began


def journal():
    for number in range(ORDERS):
        lines = [{"sku": f"A{(number * 31 + k) % 997:04}", "pieces": 1 + k % 4, "price": 199 + 7 * k} for k in range(60)]
        yield json.dumps({"number": number, "customer": number * 17 % 400, "lines": lines})


def translate(text):
    order = json.loads(text)
    total = 0
    positions = []
    for line in order["lines"]:
        amount = line["pieces"] * line["price"]
        total += amount
        positions.append(f"{line['sku']:>8}|{line['pieces']:3}|{amount / 100:9.2f}")
    body = "\n".join([f"ORDER {order['number']} OF {order['customer']}", *positions, f"TOTAL {total / 100:.2f}"])
    return order["number"], body


def relay(folder):
    offset = Offset(folder)
    sent = []
    cuts = [time.monotonic_ns()]
    for text in journal():
        number, body = translate(text)
        sent.append(len(body))
        offset.commit(number, hashlib.sha256(body.encode()).hexdigest())
        cuts.append(time.monotonic_ns())
    print(f"{len(sent)} orders, {sum(sent)} bytes")
    return cuts, offset


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=".") as name:
        cuts, offset = relay(Path(name))
    write(
        tile(cuts, "order"),
        unit="order",
        limiting="io",
        phases_ns={"commit": offset.spent},
        problem=problem(
            "the position is synced to disk after every order",
            "order_relay.py:Offset.commit",
            "io",
            wasted_ns=offset.spent * (ENOUGH - 1) // ENOUGH,
        ),
    )
