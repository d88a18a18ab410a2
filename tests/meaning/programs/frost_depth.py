"""How deep does the ground freeze? Heat flows down through three soils, each through one winter.

`winter(soil)` holds the loop, and is called for sand, loam and clay; a row of the arrays is a depth, a column a place
along the road. Healthy, compute-bound in NumPy. Truth: 3 soils of 1700 time steps, 5100 in all; a line is printed every
340th.
"""

import math
import time
from collections import namedtuple

import numpy as np
from truth import tile, write

Soil = namedtuple("Soil", "name thawed frozen capacity water")
SOILS = [
    Soil("sand", 1.6, 2.2, 2.1e6, 6.0e7),
    Soil("loam", 1.2, 1.9, 2.4e6, 9.0e7),
    Soil("clay", 1.1, 1.7, 2.8e6, 1.2e8),
]
STEPS, DEPTHS, PLACES = 1700, 120, 360
DZ, DT = 0.04, 600.0

cuts = []


def report(soil, day, ground):
    deepest = (ground < 0).sum(axis=0).mean() * DZ
    print(f"{soil.name:5} day {day:5.1f}: frozen down to {deepest:.2f} m")


def winter(soil):
    ground = np.full((DEPTHS, PLACES), 4.0)
    shade = np.linspace(0, 3, PLACES)
    for step in range(1, STEPS + 1):
        day = step * DT / 86400
        ground[0] = -6 - 5 * math.sin(day / 4) - shade
        k = np.where(ground < 0, soil.frozen, soil.thawed)
        # water freezes between 0 and -1 degrees, which acts as a larger heat capacity
        c = np.where(np.abs(ground + 0.5) < 0.5, soil.capacity + soil.water, soil.capacity)
        flux = 0.5 * (k[1:] + k[:-1]) * (ground[1:] - ground[:-1]) / DZ
        ground[1:-1] += DT / DZ * (flux[1:] - flux[:-1]) / c[1:-1]
        ground[-1] = ground[-2]
        if step % 340 == 0:
            report(soil, day, ground)
        cuts.append(time.monotonic_ns())


cuts.append(time.monotonic_ns())
for soil in SOILS:
    winter(soil)
write(tile(cuts, "time step"), unit="time step", limiting="operators", levels={"soil": len(SOILS)})
