"""Functions whose source lines are counted (--lines)."""

import time


def collatz(n):
    length = 0
    while n != 1:
        if n % 2:
            n = 3 * n + 1
        else:
            n //= 2
        length += 1
    return length


class Model:
    def update(self, values):
        total = 0
        for value in values:
            total += collatz(value)
        if total < 0:
            total = 0  # never
        return total


def train():
    model = Model()
    for epoch in range(30):
        model.update(range(1, 120))
        if epoch % 10 == 9:
            time.sleep(0.01)


train()
