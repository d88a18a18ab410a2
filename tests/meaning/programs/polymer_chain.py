"""Monte Carlo of a polymer of 60 beads: a sweep tries to move each bead once; every 10th sweep measures its size.

Planted: after each tried move `energy` sums over all pairs and bonds of the chain, though only one bead has moved.
Truth: 180 sweeps, 10800 moves inside; limited by Python, in `energy`; the gain is measured against sweeps that take the
energy of the moved bead only, run after the loop on the same chain.
"""

import math
import random
import time

from truth import problem, tile, write

BEADS, SWEEPS = 60, 180


def pair(a, b):
    squared = (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2
    if squared > 6.25:
        return 0.0
    sixth = 1.0 / max(squared, 0.4) ** 3
    return 4.0 * (sixth * sixth - sixth)


def bond(a, b):
    return 50.0 * (math.dist(a, b) - 1.0) ** 2


def energy(chain):
    total = 0.0
    for i in range(len(chain)):
        if i:
            total += bond(chain[i - 1], chain[i])
        for j in range(i - 1):
            total += pair(chain[i], chain[j])
    return total


def energy_of_bead(chain, i):
    total = sum(pair(chain[i], chain[j]) for j in range(len(chain)) if abs(i - j) > 1)
    return total + sum(bond(chain[i], chain[j]) for j in (i - 1, i + 1) if 0 <= j < len(chain))


def try_move(chain, i, before, rng, local=False):
    """Moves bead i or leaves it; returns the energy that holds then."""
    old = chain[i]
    if local:
        before = energy_of_bead(chain, i)
    chain[i] = tuple(x + rng.uniform(-0.15, 0.15) for x in old)
    after = energy_of_bead(chain, i) if local else energy(chain)
    if after > before and rng.random() >= math.exp(before - after):
        chain[i] = old
        return before
    return after


def radius_of_gyration(chain):
    centre = [sum(bead[k] for bead in chain) / len(chain) for k in range(3)]
    return math.sqrt(sum(math.dist(bead, centre) ** 2 for bead in chain) / len(chain))


def main():
    rng = random.Random(12)
    chain = [(float(i), 0.0, 0.0) for i in range(BEADS)]
    now = energy(chain)
    sizes = []
    cuts = [time.monotonic_ns()]
    for sweep in range(SWEEPS):
        for _ in range(BEADS):
            now = try_move(chain, rng.randrange(BEADS), now, rng)
        if sweep % 10 == 9:
            sizes.append(radius_of_gyration(chain))
        cuts.append(time.monotonic_ns())
    print(f"energy {now:.2f}, radius of gyration {sizes[0]:.2f} -> {sizes[-1]:.2f}")

    t = time.monotonic_ns()
    for _ in range(10 * BEADS):
        try_move(chain, rng.randrange(BEADS), 0.0, rng, local=True)
    better = (time.monotonic_ns() - t) // 10
    write(
        tile(cuts, "sweep"),
        unit="sweep",
        limiting="python",
        levels={"move": SWEEPS * BEADS},
        problem=problem(
            "the whole chain's energy is summed anew for every tried move of one bead",
            "polymer_chain.py:energy",
            "python",
            wasted_ns=cuts[-1] - cuts[0] - better * SWEEPS,
        ),
    )


if __name__ == "__main__":
    main()
