# run: mpirun -n 2
"""A lava flow down a slope, cut into two halves of columns; each half keeps thickness and heat of its cells in NumPy.

Halos travel by persistent requests (Send_init, Recv_init, Startall, Waitall), two fields packed into one message.
Every 60th step the front and the volume are reduced over ranks and rank 0 prints them. Healthy and balanced: both
halves have the same number of cells, and array arithmetic does not care whether there is lava. Truth: 720 time steps
of two classes on each rank; limited by operators (one may say balanced). `communication` is the measured time in MPI,
most of which is the noise between the ranks.
"""

import time

import numpy as np
from mpi4py import MPI
from truth import tile, write

STEPS, EVERY = 720, 60
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size


class Halo:
    """One message to each neighbour and step: the outermost columns of both fields."""

    def __init__(self, rows):
        self.neighbours = [other for other in (rank - 1, rank + 1) if 0 <= other < size]
        self.out = {other: np.empty((2, rows)) for other in self.neighbours}
        self.into = {other: np.empty((2, rows)) for other in self.neighbours}
        self.requests = []
        for other in self.neighbours:
            self.requests.append(comm.Recv_init(self.into[other], source=other))
            self.requests.append(comm.Send_init(self.out[other], dest=other))

    def free(self):
        for request in self.requests:
            request.Free()

    def exchange(self, *fields):
        for other in self.neighbours:
            column = 1 if other < rank else -2
            for k, field in enumerate(fields):
                self.out[other][k] = field[:, column]
        MPI.Prequest.Startall(self.requests)
        MPI.Request.Waitall(self.requests)
        for other in self.neighbours:
            column = 0 if other < rank else -1
            for k, field in enumerate(fields):
                field[:, column] = self.into[other][k]


class Flow:
    def __init__(self, rows=300, columns=320):
        own = columns // size
        x = np.arange(rank * own - 1, (rank + 1) * own + 1)
        y = np.arange(rows)
        self.ground = 0.05 * (rows - y)[:, None] + 1.5 * np.sin(x / 17.0) * np.sin(y / 23.0)[:, None]
        self.thickness = np.zeros((rows, own + 2))
        self.heat = np.zeros_like(self.thickness)
        self.vent = (np.hypot(x - columns / 2, y[:, None] - 40) < 12).astype(float)
        self.halo = Halo(rows)
        self.talking = 0

    def exchange(self):
        t = time.monotonic_ns()
        self.halo.exchange(self.thickness, self.heat)
        self.talking += time.monotonic_ns() - t

    def fluidity(self, temperature):
        return np.exp(3.0 * np.clip(temperature - 1.0, -2.0, 0.0))

    def step(self, dt=0.1):
        h, q = self.thickness, self.heat
        h += dt * 0.08 * self.vent
        q += dt * 0.08 * self.vent * 1.15
        self.exchange()
        level = self.ground + h
        temperature = q / np.maximum(h, 1e-9)
        ease = self.fluidity(temperature) * np.minimum(h, 2.0)
        for axis in (0, 1):
            a = np.s_[:-1, :] if axis == 0 else np.s_[:, :-1]
            b = np.s_[1:, :] if axis == 0 else np.s_[:, 1:]
            drop = level[a] - level[b]
            flux = dt * drop * np.where(drop > 0, ease[a], ease[b])
            limit = 0.2 * np.where(drop > 0, h[a], h[b])
            flux = np.clip(flux, -limit, limit)
            warm = flux * np.where(drop > 0, temperature[a], temperature[b])
            h[a] -= flux
            h[b] += flux
            q[a] -= warm
            q[b] += warm
        q -= dt * 0.0006 * np.minimum(h, 1.0) * np.maximum(temperature, 0.0) ** 4

    def report(self, step):
        mine = self.thickness[:, 1:-1]
        reached = np.nonzero(mine.max(axis=1) > 0.01)[0]
        own = np.array([mine.sum(), reached.max(initial=0)])
        t = time.monotonic_ns()
        volume = comm.allreduce(own[0])
        front = comm.allreduce(own[1], op=MPI.MAX)
        self.talking += time.monotonic_ns() - t
        if rank == 0:
            print(f"step {step:4d}: volume {volume:9.2f}, front at row {front:.0f}", flush=True)


def main():
    flow = Flow()
    comm.Barrier()
    cuts = [time.monotonic_ns()]
    for step in range(STEPS):
        flow.step()
        if step % EVERY == EVERY - 1:
            flow.report(step + 1)
        cuts.append(time.monotonic_ns())
    flow.halo.free()
    write(
        tile(cuts, lambda index: "step+report" if index % EVERY == EVERY - 1 else "step"),
        rank=rank,
        unit="time step",
        limiting="operators",
        limiting_also=["balanced"],
        phases_ns={"communication": flow.talking},
    )


if __name__ == "__main__":
    main()
