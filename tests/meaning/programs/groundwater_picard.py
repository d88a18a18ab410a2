"""Unconfined groundwater below a field with a well: implicit time steps, each with Picard iterations and a sparse solve.

Everything stands in one function with nested loops. Truth: 140 time steps. The matrix is put together cell by cell in
Python at every iteration, which takes most of the time; putting it together with arrays, as measured afterwards on the
same heads, would save nearly all of that.
"""

import time

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import spsolve
from truth import problem, tile, write

NX, NY = 64, 14
DX, DT, K, SY = 10.0, 0.5, 8.0, 0.2


def assemble(h, old):
    rows, cols, vals = [], [], []
    rhs = np.zeros(NX * NY)
    for j in range(NY):
        for i in range(NX):
            n = j * NX + i
            if i == 0 or i == NX - 1:
                rows.append(n)
                cols.append(n)
                vals.append(1.0)
                rhs[n] = 20.0 if i == 0 else 18.0
                continue
            diagonal = SY * DX * DX / DT
            for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                if not 0 <= j + dj < NY:
                    continue
                m = (j + dj) * NX + i + di
                trans = K * 0.5 * (h[n] + h[m])
                rows.append(n)
                cols.append(m)
                vals.append(-trans)
                diagonal += trans
            rows.append(n)
            cols.append(n)
            vals.append(diagonal)
            rhs[n] = SY * DX * DX / DT * old[n]
    return coo_matrix((vals, (rows, cols)), shape=(NX * NY, NX * NY)).tocsr(), rhs


def assemble_arrays(h, old):
    n = np.arange(NX * NY)
    i, j = n % NX, n // NX
    inside = (i > 0) & (i < NX - 1)
    diagonal = np.where(inside, SY * DX * DX / DT, 1.0)
    rows, cols, vals = [], [], []
    for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        here = n[inside & (j + dj >= 0) & (j + dj < NY)]
        there = here + dj * NX + di
        trans = K * 0.5 * (h[here] + h[there])
        diagonal[here] += trans
        rows.append(here)
        cols.append(there)
        vals.append(-trans)
    rhs = np.where(inside, SY * DX * DX / DT * old, np.where(i == 0, 20.0, 18.0))
    entries = np.concatenate([*vals, diagonal]), (np.concatenate([*rows, n]), np.concatenate([*cols, n]))
    return coo_matrix(entries, shape=(NX * NY, NX * NY)).tocsr(), rhs


def simulate(steps):
    h = np.linspace(20.0, 18.0, NX * NY)
    well = (NY // 2) * NX + NX // 2
    assembling, iterations = 0, 0
    cuts = [time.monotonic_ns()]
    for step in range(steps):
        old = h.copy()
        for _ in range(12):
            before = time.monotonic_ns()
            matrix, rhs = assemble(h, old)
            assembling += time.monotonic_ns() - before
            rhs[well] -= 60.0 * (1 + np.sin(step / 9))
            new = spsolve(matrix, rhs)
            change = np.abs(new - h).max()
            h = new
            iterations += 1
            if change < 1e-4:
                break
        if step % 15 == 14:
            print(f"day {step * DT:5.1f}: head at the well {h[well]:.3f}")
        cuts.append(time.monotonic_ns())
    return cuts, assembling, iterations, h


cuts, assembling, iterations, h = simulate(140)
slow, fast = assemble(h, h)[0], []
for _ in range(101):
    t = time.monotonic_ns()
    quick = assemble_arrays(h, h)[0]
    fast.append(time.monotonic_ns() - t)
assert abs(slow - quick).max() < 1e-9
write(
    tile(cuts, "time step"),
    unit="time step",
    limiting="python",
    levels={"Picard iteration": iterations},
    phases_ns={"assembly": assembling},
    problem=problem(
        "the matrix is put together cell by cell in Python at every iteration",
        "groundwater_picard.py:assemble",
        "python",
        wasted_ns=assembling - sorted(fast)[50] * iterations,
    ),
)
