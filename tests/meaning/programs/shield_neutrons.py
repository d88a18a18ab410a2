# run: mpirun -n 3
"""How many neutrons pass a shield: Monte Carlo in batches, which rank 0 hands out to two workers.

A worker follows all neutrons of a batch at once with NumPy, flight by flight, until each was absorbed or has left;
then it sends its tally and gets the next seed. Batches differ, as the shield's thickness varies from batch to batch.
The master looks for messages with Iprobe and sleeps half a millisecond in between, so that it leaves the cores to the
workers. Healthy: both workers compute all the time. Truth: 170 batches handed out, on rank 0 only (who gets how many
is not fixed, so workers write no truth); limited by operators in the workers (balanced could be defended, and so
could synchronisation for the master, which only waits). Every 34th tally prints a line.
"""

import sys
import time

import numpy as np
from mpi4py import MPI
from truth import tile, write

BATCHES, NEUTRONS = 170, 24000
ASK, WORK, STOP = 1, 2, 3
THICKNESS = (20.0, 30.0, 40.0, 50.0, 60.0)


class Shield:
    """Layers of water and steel: mean free path, chance of absorption, and how far forward scattering points."""

    def __init__(self, thickness):
        self.thickness = thickness
        self.edges = thickness * np.array([0.25, 0.5, 0.75])
        self.path = np.array([2.1, 3.4, 2.1, 3.4])
        self.absorbs = np.array([0.06, 0.14, 0.06, 0.14])
        self.forward = np.array([0.3, 0.1, 0.3, 0.1])

    def batch(self, seed):
        rng = np.random.default_rng(seed)
        x, mu = np.zeros(NEUTRONS), np.sqrt(rng.random(NEUTRONS))
        energy = np.full(NEUTRONS, 2.0)
        passed = returned = absorbed = flights = 0
        spectrum = np.zeros(20)
        while len(x):
            layer = np.searchsorted(self.edges, x)
            x = x - mu * self.path[layer] * np.log(rng.random(len(x)))
            out, back = x > self.thickness, x < 0
            passed += int(out.sum())
            returned += int(back.sum())
            spectrum += np.histogram(energy[out], bins=20, range=(0.0, 2.0))[0]
            layer = np.searchsorted(self.edges, x)
            taken = rng.random(len(x)) < self.absorbs[layer]
            stay = ~(out | back | taken)
            absorbed += int((taken & ~out & ~back).sum())
            x, mu, energy, layer = x[stay], mu[stay], energy[stay], layer[stay]
            isotropic = 2 * rng.random(len(x)) - 1
            mu = np.clip(self.forward[layer] * mu + (1 - self.forward[layer]) * isotropic, -1, 1)
            energy = energy * rng.uniform(0.7, 1.0, len(x))
            flights += 1
        return np.array([passed, returned, absorbed, flights, *spectrum])


def worker(comm):
    status = MPI.Status()
    comm.send(None, dest=0, tag=ASK)
    while True:
        task = comm.recv(source=0, status=status)
        if status.tag == STOP:
            return
        number, thickness = task
        tally = Shield(thickness).batch(1000 + number)
        comm.send((number, thickness, tally), dest=0, tag=ASK)


def wait_for_message(comm, status):
    while not comm.Iprobe(source=MPI.ANY_SOURCE, tag=ASK, status=status):
        time.sleep(0.0005)
    return comm.recv(source=status.source, tag=ASK)


def master(comm):
    status = MPI.Status()
    tallies, done, handed, stopped = {}, 0, 0, 0
    cuts = [time.monotonic_ns()]
    while stopped < comm.size - 1:
        result = wait_for_message(comm, status)
        if result is not None:
            _, thickness, tally = result
            tallies[thickness] = tallies.get(thickness, 0) + tally
            done += 1
        if handed < BATCHES:
            comm.send((handed, THICKNESS[handed % len(THICKNESS)]), dest=status.source, tag=WORK)
            handed += 1
        else:
            comm.send(None, dest=status.source, tag=STOP)
            stopped += 1
        if result is not None:
            if done % 34 == 0:
                passed = sum(tally[0] for tally in tallies.values())
                print(f"{done} batches, {passed:.0f} neutrons have passed", file=sys.stderr)
            cuts.append(time.monotonic_ns())
    for thickness, tally in sorted(tallies.items()):
        total = tally[:3].sum()
        print(f"{thickness:4.0f} cm: {tally[0] / total:.5f} pass, {tally[1] / total:.3f} return")
    write(
        tile(cuts, "batch"),
        unit="batch",
        limiting="operators",
        limiting_also=["balanced", "synchronisation"],
    )


if __name__ == "__main__":
    master(MPI.COMM_WORLD) if MPI.COMM_WORLD.rank == 0 else worker(MPI.COMM_WORLD)
