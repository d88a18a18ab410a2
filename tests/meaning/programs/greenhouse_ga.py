"""A genetic algorithm looks for a greenhouse's heating plan; a ProcessPoolExecutor with two processes rates the plans.

Each generation calls `pool.map(rate, plans)`, for which the parent waits, then selects and crosses plans, which is
quick. Rating is a simulation in plain Python, in chunks of 8. Healthy: both processes are busy. Truth: 60 generations;
limited by Python in the pool's processes (the parent only waits: synchronisation, data or starvation could be
defended). `evaluation` is the measured time from calling map to having all ratings, `breeding` the rest. Generation 0
stands out, as processes are started then, where that is long enough to be seen.
"""

import math
import random
import time
from concurrent.futures import ProcessPoolExecutor

from truth import tile, write

GENERATIONS, PLANS, HOURS = 60, 80, 24


def outside(minute):
    return 6 + 7 * math.sin(2 * math.pi * (minute - 540) / 1440)


def rate(plan):
    """Cost of a day: heating, and how far the plants are from what they like."""
    air, soil, cost = 14.0, 12.0, 0.0
    for minute in range(0, 1440):
        power = plan[minute // 60]
        air += 0.02 * (outside(minute) - air) + 0.03 * (soil - air) + 0.6 * power
        soil += 0.004 * (air - soil)
        wanted = 21.0 if 360 <= minute < 1200 else 16.0
        cost += 0.4 * power + 0.01 * (air - wanted) ** 2
    return cost


def breed(plans, costs, rng):
    order = sorted(range(len(plans)), key=costs.__getitem__)
    parents = [plans[k] for k in order[: len(plans) // 4]]
    children = parents[:4]
    while len(children) < len(plans):
        mother, father = rng.sample(parents, 2)
        cut = rng.randrange(1, HOURS)
        child = mother[:cut] + father[cut:]
        place = rng.randrange(HOURS)
        child[place] = min(1.0, max(0.0, child[place] + rng.gauss(0, 0.15)))
        children.append(child)
    return children


def main():
    rng = random.Random(4)
    plans = [[rng.random() for _ in range(HOURS)] for _ in range(PLANS)]
    evaluating = breeding = 0
    with ProcessPoolExecutor(max_workers=2) as pool:
        cuts = [time.monotonic_ns()]
        for generation in range(GENERATIONS):
            costs = list(pool.map(rate, plans, chunksize=8))
            rated = time.monotonic_ns()
            if generation % 20 == 0:
                print(f"generation {generation}: best {min(costs):.2f}, mean {sum(costs) / PLANS:.2f}", flush=True)
            plans = breed(plans, costs, rng)
            evaluating += rated - cuts[-1]
            cuts.append(time.monotonic_ns())
            breeding += cuts[-1] - rated
    write(
        tile(cuts, "generation"),
        unit="generation",
        limiting="python",
        limiting_also=["synchronisation", "data", "starvation"],
        levels={"plan": GENERATIONS * PLANS},
        phases_ns={"evaluation": evaluating, "breeding": breeding},
    )


if __name__ == "__main__":
    main()
