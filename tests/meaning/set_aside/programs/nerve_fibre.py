"""A pulse runs along a nerve fibre (FitzHugh and Nagumo), in plain lists and floats, in one script without functions.

The outer loop counts time steps, the inner one the nodes of the fibre; its body is arithmetic and calls nothing.
Planted in the sense that the whole program is: node by node in Python is what NumPy does in a small part of the time.
Truth: 5600 time steps, limited by Python; nodes are the inner level. The gain is measured against the same steps on
arrays, run after the loop.
"""

import time

import numpy as np
from truth import problem, tile, write

NODES, STEPS = 1000, 5600
DT, SPREAD = 0.1, 4.0
A, B, EPSILON = 0.1, 2.5, 0.004

v = [0.0] * NODES
w = [0.0] * NODES
new_v = [0.0] * NODES
new_w = [0.0] * NODES
v[:40] = [1.0] * 40
inside = range(1, NODES - 1)
probes = {150: [], 450: []}
near, far = probes[150], probes[450]

cuts = [time.monotonic_ns()]
for step in range(STEPS):
    for i in inside:
        u, r = v[i], w[i]
        bend = v[i - 1] - 2.0 * u + v[i + 1]
        current = u * (u - A) * (1.0 - u) - r
        new_v[i] = u + DT * (SPREAD * bend + current)
        new_w[i] = r + DT * EPSILON * (u - B * r)
    new_v[0] = new_v[1]
    new_w[0] = new_w[1]
    new_v[-1] = new_v[-2]
    new_w[-1] = new_w[-2]
    v, new_v = new_v, v
    w, new_w = new_w, w
    near += [v[150]]
    far += [v[450]]
    cuts.append(time.monotonic_ns())

for place, trace in probes.items():
    peak = max(range(STEPS), key=trace.__getitem__)
    print(f"node {place}: highest {trace[peak]:.3f} at {peak * DT:.1f} ms")

# The same on arrays.
V, W = np.zeros(NODES), np.zeros(NODES)
V[:40] = 1.0
begin = time.monotonic_ns()
for step in range(STEPS):
    u, r = V[1:-1], W[1:-1]
    du = SPREAD * (V[:-2] - 2.0 * u + V[2:]) + u * (u - A) * (1.0 - u) - r
    dr = EPSILON * (u - B * r)
    u += DT * du
    r += DT * dr
    V[0], W[0], V[-1], W[-1] = V[1], W[1], V[-2], W[-2]
quick = time.monotonic_ns() - begin
assert np.allclose(V, v, atol=1e-6) and np.allclose(W, w, atol=1e-6)

write(
    tile(cuts, "step"),
    unit="time step",
    limiting="python",
    levels={"node": STEPS * (NODES - 2)},
    problem=problem(
        "nodes of the fibre are advanced one by one in Python, not as arrays",
        "nerve_fibre.py:<module>",
        "python",
        wasted_ns=cuts[-1] - cuts[0] - quick,
    ),
)
