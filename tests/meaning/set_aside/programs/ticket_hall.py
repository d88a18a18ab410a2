"""Four clerks sell seats of a concert hall to a queue of customers; all of them need the hall's one lock.

A producer thread lets customers into a bounded queue, four clerk threads take them out, find seats next to each
other, have the card charged, and note the sale. Planted: `Clerk.sell` holds the lock while the card is charged (8 ms,
slept: a bank far away), so that four clerks sell no more than one would. Seats could be reserved under the lock and
paid for outside of it. Truth: 640 sales, in the order in which they were noted; limited by the lock (one may say
synchronisation, or io: the bank). The gain is three quarters of the measured time of charging, as four customers
could pay at once.
"""

import queue
import random
import threading
import time

from truth import problem, tile, write

CUSTOMERS, CLERKS = 640, 4


class Hall:
    def __init__(self, rows=60, seats=40):
        self.lock = threading.Lock()
        self.taken = [[False] * seats for _ in range(rows)]
        self.sales, self.charging, self.turned_away = [], 0, 0
        self.cuts = []

    def quality(self, row, first, number):
        middle = len(self.taken[row]) / 2
        return -abs(first + number / 2 - middle) - 1.5 * abs(row - 12)

    def best(self, number):
        """The best free seats next to each other."""
        best, place = -1e9, None
        for row, taken in enumerate(self.taken):
            if -1.5 * abs(row - 12) < best:
                continue
            for first in range(len(taken) - number + 1):
                if not any(taken[first : first + number]):
                    quality = self.quality(row, first, number)
                    if quality > best:
                        best, place = quality, (row, first)
        return place


class Bank:
    def __init__(self, seed=3):
        self.rng, self.total = random.Random(seed), 0

    def charge(self, cents):
        time.sleep(0.007 + 0.002 * self.rng.random())
        self.total += cents
        return self.total


class Clerk(threading.Thread):
    def __init__(self, name, hall, bank, line):
        super().__init__(name=name)
        self.hall, self.bank, self.line = hall, bank, line
        self.served = 0

    def run(self):
        while (customer := self.line.get()) is not None:
            self.sell(customer)
            self.served += 1

    def price(self, row, number):
        return number * (9000 - 100 * row)

    def sell(self, customer):
        name, number = customer
        hall = self.hall
        with hall.lock:
            place = hall.best(number)
            if place is None:
                hall.turned_away += 1
                hall.cuts.append(time.monotonic_ns())
                return
            row, first = place
            t = time.monotonic_ns()
            receipt = self.bank.charge(self.price(row, number))
            hall.charging += time.monotonic_ns() - t
            hall.taken[row][first : first + number] = [True] * number
            hall.sales.append((name, row, first, number, receipt))
            hall.cuts.append(time.monotonic_ns())


def arrive(line):
    rng = random.Random(44)
    for number in range(CUSTOMERS):
        line.put((f"customer {number}", rng.choice([1, 2, 2, 2, 3, 4])))
    for _ in range(CLERKS):
        line.put(None)


def main():
    hall, bank, line = Hall(), Bank(), queue.Queue(maxsize=12)
    clerks = [Clerk(f"clerk-{k}", hall, bank, line) for k in range(CLERKS)]
    door = threading.Thread(target=arrive, args=(line,), name="door")
    hall.cuts.append(time.monotonic_ns())
    door.start()
    for clerk in clerks:
        clerk.start()
    door.join()
    for clerk in clerks:
        clerk.join()

    rows = {row for _, row, *_ in hall.sales}
    print(f"{len(hall.sales)} sales in {len(rows)} rows, {bank.total / 100:.2f} taken, {hall.turned_away} turned away")
    print("  ".join(f"{clerk.name} {clerk.served}" for clerk in clerks))
    write(
        tile(hall.cuts, "sale"),
        unit="sale",
        limiting="lock",
        limiting_also=["synchronisation", "io"],
        phases_ns={"charge": hall.charging},
        problem=problem(
            "the hall's lock is held while the bank charges the card",
            "ticket_hall.py:Clerk.sell",
            "lock",
            wasted_ns=hall.charging * (CLERKS - 1) // CLERKS,
        ),
    )


if __name__ == "__main__":
    main()
