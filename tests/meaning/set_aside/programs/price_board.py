"""Baskets of a shop are priced with a table of discounts that a second thread refreshes from a server.

Truth: 400 baskets. The refresher keeps the table's lock during its whole request (30 ms of waiting), so that pricing
waits for the lock most of the time; making the request before taking the lock would save the measured wait. Only some
baskets are held up, each for up to the whole request. One may say synchronisation.
"""

import contextlib
import random
import threading
import time

from truth import problem, tile, write

waits = []


@contextlib.contextmanager
def holding(lock):
    before = time.monotonic_ns()
    lock.acquire()
    waits.append(time.monotonic_ns() - before)
    try:
        yield
    finally:
        lock.release()


def refresher(table, lock, stop):
    def request(turn):
        time.sleep(0.030)  # the server's answer
        return {k: (k * 7 + turn) % 30 / 100 for k in range(400)}

    def loop():
        turn = 0
        while not stop.wait(0.004):
            with lock:
                table.update(request(turn))
            turn += 1

    return loop


def price(basket, table, lock):
    lines = []
    for item, number in basket:
        net = sum((item * 31 + k) % 97 for k in range(30)) / 10
        lines.append((item, number, net))
    with holding(lock):
        discounts = [table.get(item, 0.0) for item, _, _ in lines]
    return sum(number * net * (1 - discount) for (_, number, net), discount in zip(lines, discounts))


def main():
    rng = random.Random(77)
    baskets = [[(rng.randrange(400), rng.randint(1, 5)) for _ in range(300)] for _ in range(400)]
    table, lock, stop = {}, threading.Lock(), threading.Event()
    thread = threading.Thread(target=refresher(table, lock, stop), daemon=True)
    thread.start()
    total = 0.0
    cuts = [time.monotonic_ns()]
    for basket in baskets:
        total += price(basket, table, lock)
        cuts.append(time.monotonic_ns())
    stop.set()
    thread.join()
    print(f"{total:.2f}")
    write(
        tile(cuts, "basket"),
        unit="basket",
        limiting="lock",
        limiting_also=["synchronisation"],
        phases_ns={"lock": sum(waits)},
        problem=problem(
            "the lock is kept during the request", "price_board.py:refresher.<locals>.loop", "lock", wasted_ns=sum(waits)
        ),
    )


if __name__ == "__main__":
    main()
