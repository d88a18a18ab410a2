"""Sizes the bars of a long truss bridge: `scipy.optimize.minimize` (L-BFGS-B) with an adjoint gradient and a callback.

A step is one iteration of the optimiser, seen by the callback; evaluations of `Truss.cost` are the inner level
(usually one for each iteration). Planted: `Truss.stiffness` adds the bars to the matrix one by one in Python, though
their pattern never changes; solving is little. Limited by Python. The gain is the measured time of `stiffness` less
what the same matrix takes with arrays (unit matrices made once, one `bincount`), measured after the loop.
"""

import time

import numpy as np
from scipy.linalg import solveh_banded
from scipy.optimize import minimize
from truth import problem, tile, write

ITERATIONS = 260


class Truss:
    """Two chords, posts and crossed diagonals; joints are numbered bay by bay, so that the matrix is banded."""

    def __init__(self, bays=400, height=1.2):
        joints = [(float(x), y * height) for x in range(bays + 1) for y in (0, 1)]
        bars = []
        for bay in range(bays):
            a, b, c, d = 2 * bay, 2 * bay + 1, 2 * bay + 2, 2 * bay + 3
            bars += [(a, c), (b, d), (a, d), (b, c), (c, d)]
        self.joints, self.bars = np.array(joints), bars
        delta = self.joints[[j for _, j in bars]] - self.joints[[i for i, _ in bars]]
        self.lengths = np.hypot(*delta.T)
        self.directions = delta / self.lengths[:, None]
        self.dofs = 2 * len(joints)
        self.width = 8
        supports = {j for j in range(0, 2 * (bays + 1), 20)}
        self.fixed = sorted(2 * j + axis for j in supports for axis in (0, 1))
        self.load = np.zeros(self.dofs)
        self.load[3::4] = -1.0 - 0.3 * np.sin(np.arange(bays + 1) / 5.0)
        self.load[self.fixed] = 0.0
        self.building = self.evaluations = 0

    def stiffness(self, areas):
        """Upper band of the stiffness matrix."""
        band = np.zeros((self.width, self.dofs))
        for (i, j), area, length, (cx, cy) in zip(self.bars, areas, self.lengths, self.directions):
            k = area / length
            where = (2 * i, 2 * i + 1, 2 * j, 2 * j + 1)
            way = (-cx, -cy, cx, cy)
            for p in range(4):
                for q in range(p, 4):
                    band[self.width - 1 + where[p] - where[q], where[q]] += k * way[p] * way[q]
        band[-1, self.fixed] += 1e6
        return band

    def cost(self, areas, price=0.6):
        t = time.monotonic_ns()
        band = self.stiffness(areas)
        self.building += time.monotonic_ns() - t
        self.evaluations += 1
        u = solveh_banded(band, self.load)
        ends = np.array(self.bars)
        stretch = ((u.reshape(-1, 2)[ends[:, 1]] - u.reshape(-1, 2)[ends[:, 0]]) * self.directions).sum(1)
        compliance = self.load @ u
        gradient = -(stretch**2) / self.lengths + price * self.lengths
        return compliance + price * (areas @ self.lengths), gradient

    def pattern(self):
        """Row, column and value per unit of area of each bar's ten numbers."""
        rows, columns, values = [], [], []
        for (i, j), length, (cx, cy) in zip(self.bars, self.lengths, self.directions):
            where, way = (2 * i, 2 * i + 1, 2 * j, 2 * j + 1), (-cx, -cy, cx, cy)
            for p in range(4):
                for q in range(p, 4):
                    rows.append(self.width - 1 + where[p] - where[q])
                    columns.append(where[q])
                    values.append(way[p] * way[q] / length)
        return np.array(rows) * self.dofs + np.array(columns), np.array(values)


def quick_stiffness(truss, places, values, areas):
    weights = values * np.repeat(areas, 10)
    band = np.bincount(places, weights, truss.width * truss.dofs).reshape(truss.width, truss.dofs)
    band[-1, truss.fixed] += 1e6
    return band


def main():
    truss = Truss()
    start = np.full(len(truss.bars), 2.0)
    history = []

    def watch(areas):
        history.append(float(areas @ truss.lengths))
        if len(history) % 40 == 0:
            print(f"iteration {len(history):3d}  volume {history[-1]:9.3f}  thinnest {areas.min():.4f}")
        cuts.append(time.monotonic_ns())

    cuts = [time.monotonic_ns()]
    result = minimize(
        truss.cost,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.05, 40.0)] * len(start),
        callback=watch,
        options={"maxiter": ITERATIONS, "maxfun": 10**6, "ftol": 0.0, "gtol": 0.0, "maxcor": 8},
    )
    print(f"{result.nit} iterations, {truss.evaluations} evaluations, cost {result.fun:.3f}")

    places, values = truss.pattern()
    assert np.allclose(quick_stiffness(truss, places, values, result.x), truss.stiffness(result.x))
    t = time.monotonic_ns()
    for _ in range(50):
        quick_stiffness(truss, places, values, result.x)
    quickly = (time.monotonic_ns() - t) // 50 * truss.evaluations
    write(
        tile(cuts, "iteration"),
        unit="optimizer iteration",
        limiting="python",
        levels={"evaluation": truss.evaluations},
        phases_ns={"stiffness": truss.building},
        problem=problem(
            "the stiffness matrix is put together bar by bar in Python",
            "truss_sizing.py:Truss.stiffness",
            "python",
            wasted_ns=truss.building - quickly,
        ),
    )


if __name__ == "__main__":
    main()
