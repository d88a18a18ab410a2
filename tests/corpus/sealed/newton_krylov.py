"""A stiff reaction-diffusion equation, implicitly in time: Newton's method in each time step, GMRES without a matrix in
each of its iterations; the time step is halved and tried anew where Newton fails, and grows where it was easy. The step
is a time step, tries included.
"""

import logging
import os
import sys
import time

import numpy as np

log = logging.getLogger("implicit")


class NotConverged(Exception):  # noqa: N818
    pass


def gmres(apply, b, tolerance, most=30):
    """The solution in the Krylov space, by modified Gram-Schmidt and Givens rotations."""
    norm = np.linalg.norm(b)
    basis = [b / norm]
    h = np.zeros((most + 1, most))
    cosine, sine, residual = np.zeros(most), np.zeros(most), np.zeros(most + 1)
    residual[0] = norm
    for k in range(most):
        w = apply(basis[k])
        for i, v in enumerate(basis):
            h[i, k] = w @ v
            w = w - h[i, k] * v
        h[k + 1, k] = np.linalg.norm(w)
        basis.append(w / h[k + 1, k])
        for i in range(k):
            h[i, k], h[i + 1, k] = (
                cosine[i] * h[i, k] + sine[i] * h[i + 1, k],
                cosine[i] * h[i + 1, k] - sine[i] * h[i, k],
            )
        length = np.hypot(h[k, k], h[k + 1, k])
        cosine[k], sine[k] = h[k, k] / length, h[k + 1, k] / length
        h[k, k], h[k + 1, k] = length, 0.0
        residual[k], residual[k + 1] = cosine[k] * residual[k], -sine[k] * residual[k]
        if abs(residual[k + 1]) < tolerance * norm:
            break
    y = np.linalg.solve(h[: k + 1, : k + 1], residual[: k + 1])
    return np.array(basis[: k + 1]).T @ y, k + 1


def newton(residual, u, tolerance=1e-7, most=4):
    inner = 0
    for iteration in range(most):
        f = residual(u)
        size = np.linalg.norm(f)
        if size < tolerance * np.sqrt(len(u)):
            return u, iteration, inner
        scale = 1e-7 * (1 + np.linalg.norm(u))

        def jacobian(v, u=u, f=f, scale=scale):
            return (residual(u + scale * v) - f) / scale

        step, used = gmres(jacobian, -f, tolerance=1e-3)
        inner += used
        u = u + step
    raise NotConverged


class Bistable:
    """u' = d u'' + s u (1 - u) (u - a), on a line with insulated ends."""

    def __init__(self, points=240, d=0.4, s=30.0, a=0.25):
        self.h, self.d, self.s, self.a = 20.0 / points, d, s, a
        self.x = (np.arange(points) + 0.5) * self.h
        self.start = np.where(self.x < 3, 1.0, 0.0) + 0.05 * np.sin(7 * self.x)

    def rate(self, u):
        padded = np.concatenate([u[:1], u, u[-1:]])
        diffusion = self.d * (padded[2:] - 2 * u + padded[:-2]) / self.h**2
        return diffusion + self.s * u * (1 - u) * (u - self.a)

    def front(self, u):
        return self.x[np.argmin(np.abs(u - 0.5))]


def integrate(problem, end, dt):
    u, now, begins, rejected = problem.start, 0.0, [], 0
    while now < end:
        begins.append(time.monotonic_ns())
        dt = min(dt, end - now)
        while True:
            try:
                following, iterations, inner = newton(lambda v: v - u - dt * problem.rate(v), u)  # noqa: B023
                break
            except NotConverged:
                rejected += 1
                dt *= 0.5
                log.warning("t = %.3f: Newton failed, dt = %.2e", now, dt)
        u, now = following, now + dt
        if len(begins) % 10 == 0:
            log.info("t = %.3f: front at %.2f, %d Newton, %d GMRES", now, problem.front(u), iterations, inner)
        if iterations <= 3:
            dt *= 1.1
    return begins, rejected


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(levelname)s %(message)s")
    begins, rejected = integrate(Bistable(), end=4.0, dt=0.005)
    log.info("%d steps, %d tries rejected", len(begins), rejected)
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"step {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
