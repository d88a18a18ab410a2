"""An iterative solver in plain Python: enough iterations that most become statistics; some are of another kind."""

import time


def relax(cells):
    for i in range(1, len(cells) - 1):
        cells[i] = (cells[i - 1] + cells[i + 1]) / 2
    return cells


def residual(cells):
    return sum(abs(cells[i] - cells[i - 1]) for i in range(1, len(cells)))


def output(cells, number):
    time.sleep(0.004)
    return f"{number}: {cells[1]:.6f}"


def step(cells, number):
    relax(cells)
    rest = residual(cells)
    if number % 25 == 24:
        output(cells, number)
    return rest


def solve(steps):
    cells = [1.0] + [0.0] * 600
    for number in range(steps):
        step(cells, number)
        if number == 333:
            time.sleep(0.05)  # one outlier
    return cells


solve(600)
