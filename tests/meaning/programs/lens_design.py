"""Designs a lens of three elements: SciPy's differential evolution bends six surfaces until rays meet in a point.

A step is a generation, seen by the callback; each makes 30 evaluations (the first also those of the first population,
so that it stands out), an evaluation traces rays of three colours through all surfaces with NumPy. Planted:
`refractive_index` fits a cubic spline to a glass's whole table each time it is asked for one wavelength, six times in
an evaluation. Truth: 40 generations, limited by operators (making a spline is half Python: one may say python). The
gain is the measured time of all calls but one for each pair of glass and colour.
"""

from time import monotonic_ns

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import differential_evolution
from truth import problem, tile, write

COLOURS = (486.1, 587.6, 656.3)
PLACES = np.array([0.0, 4.0, 9.0, 11.0, 16.0, 20.0])
SCREEN = 110.0
FILM = ("crown", "air", "flint", "air", "crown", "air")
RAYS = np.linspace(-9.0, 9.0, 3001)
GENERATIONS = 40


def measured_glass(rng, a, b):
    wavelength = np.sort(rng.uniform(380.0, 780.0, 900))
    return wavelength, a + b / wavelength**2


class Merit:
    """The spread of rays on the screen, as a function of the curvatures of the surfaces."""

    def __init__(self, catalogue):
        self.catalogue = catalogue
        self.asked = []
        self.calls = 0
        self.tracing = 0

    def refractive_index(self, glass, colour):
        wavelength, index = self.catalogue[glass]
        return float(CubicSpline(wavelength, index)(colour))

    def trace(self, curvatures, indices):
        y, slope, z, before = RAYS.copy(), np.zeros_like(RAYS), np.full_like(RAYS, -5.0), 1.0
        for place, curvature, after in zip(PLACES, curvatures, indices):
            sag = place + 0.5 * curvature * y**2
            y = y + slope * (sag - z)
            z = sag
            normal = np.arctan(curvature * y)
            incidence = np.arctan(slope) + normal
            refracted = np.arcsin(np.clip(np.sin(incidence) * before / after, -0.99, 0.99))
            slope = np.tan(refracted - normal)
            before = after
        return y + slope * (SCREEN - z)

    def __call__(self, curvatures):
        self.calls += 1
        spots = []
        for colour in COLOURS:
            t0 = monotonic_ns()
            known = {"air": 1.0}
            for glass in self.catalogue:
                known[glass] = self.refractive_index(glass, colour)
            t1 = monotonic_ns()
            spots.append(self.trace(curvatures, [known[name] for name in FILM]))
            t2 = monotonic_ns()
            self.asked.append(t1 - t0)
            self.tracing += t2 - t1
        return float(np.sqrt(np.mean(np.square(spots))))


class Logbook:
    def __init__(self):
        self.cuts = [monotonic_ns()]

    def __call__(self, best, convergence):
        if len(self.cuts) % 10 == 0:
            print(f"generation {len(self.cuts)}: curvatures {np.round(best, 4)}")
        self.cuts.append(monotonic_ns())


def main():
    rng = np.random.default_rng(8)
    merit = Merit({"crown": measured_glass(rng, 1.505, 4200.0), "flint": measured_glass(rng, 1.600, 10500.0)})
    logbook = Logbook()
    result = differential_evolution(
        merit, [(-0.03, 0.03)] * len(PLACES), maxiter=GENERATIONS, popsize=5, tol=0, atol=0, polish=False, seed=4,
        callback=logbook,
    )  # fmt: skip
    print(f"spot {result.fun:.4f} mm after {merit.calls} evaluations")
    write(
        tile(logbook.cuts, lambda i: "generation" if i else "generation+first population"),
        unit="generation",
        limiting="operators",
        limiting_also=["python"],
        levels={"evaluation": merit.calls},
        phases_ns={"index": sum(merit.asked), "trace": merit.tracing},
        outliers={0: "evaluates the first population as well"},
        problem=problem(
            "a spline is fitted to the glass's table for every index", "lens_design.py:refractive_index", "operators",
            wasted_ns=sum(merit.asked[len(COLOURS) :]),
        ),
    )  # fmt: skip


if __name__ == "__main__":
    main()
