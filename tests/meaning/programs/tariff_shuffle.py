# run: mpirun -n 3
"""Parcels are priced and sent on to the rank that owns their hub: a shuffle by Alltoallv, batch after batch.

Three ranks each draw a batch of parcels, price them, sort them by owner and exchange them; hubs add up. Planted:
`current_tariff` broadcasts the whole tariff, a dictionary of 9000 prices, with every batch (pickled on rank 0,
unpickled on the others), though it never changes during the run. Truth: 200 batches on each rank; limited by
communication. The gain is the measured time of all broadcasts but the first, the mean of the ranks, as what one waits
in a broadcast depends on who shares a core with whom. `communication` is all the time in MPI, waiting included.
"""

from time import monotonic_ns

import numpy as np
from mpi4py import MPI
from truth import problem, tile, write

BATCHES, PARCELS, HUBS, ZONES, BANDS = 200, 6000, 90, 300, 30
clock = {"draw": 0, "pricing": 0, "communication": 0}
broadcasts = []


def load_tariff(rng):
    return {
        (f"zone-{zone:03d}", band): round(2.5 + 0.01 * zone + 0.8 * band + rng.random(), 2)
        for zone in range(ZONES)
        for band in range(BANDS)
    }


def current_tariff(comm, tariff):
    t = monotonic_ns()
    tariff = comm.bcast(tariff, root=0)
    broadcasts.append(monotonic_ns() - t)
    clock["communication"] += broadcasts[-1]
    return tariff


def draw(rng):
    t = monotonic_ns()
    hub = rng.integers(0, HUBS, PARCELS)
    zone = int(rng.integers(ZONES))
    band = np.minimum(rng.gamma(2.0, 3.0, PARCELS).astype(int), BANDS - 1)
    clock["draw"] += monotonic_ns() - t
    return f"zone-{zone:03d}", hub, band


def price(tariff, zone, band):
    t = monotonic_ns()
    row = np.array([tariff[zone, b] for b in range(BANDS)])
    prices = row[band] * np.where(band > 20, 1.15, 1.0)
    clock["pricing"] += monotonic_ns() - t
    return prices


def shuffle(comm, hub, prices):
    owner = hub % comm.size
    order = np.argsort(owner, kind="stable")
    outgoing = np.stack([hub[order].astype(float), prices[order]], axis=1)
    out = 2 * np.bincount(owner, minlength=comm.size)
    into = np.empty_like(out)
    t = monotonic_ns()
    comm.Alltoall(out, into)
    incoming = np.empty((into.sum() // 2, 2))
    comm.Alltoallv([outgoing, out], [incoming, into])
    clock["communication"] += monotonic_ns() - t
    return incoming


def settle(comm, tariff, rng):
    takings = np.zeros(HUBS)
    cuts = [monotonic_ns()]
    for batch in range(BATCHES):
        tariff = current_tariff(comm, tariff)
        zone, hub, band = draw(rng)
        prices = price(tariff, zone, band)
        arrived = shuffle(comm, hub, prices)
        takings += np.bincount(arrived[:, 0].astype(int), arrived[:, 1], HUBS)
        if batch % 50 == 49:
            t = monotonic_ns()
            total = comm.reduce(takings.sum(), root=0)
            clock["communication"] += monotonic_ns() - t
            if comm.rank == 0:
                print(f"after batch {batch + 1}: {total:.2f}", flush=True)
        cuts.append(monotonic_ns())
    return cuts


def main():
    comm = MPI.COMM_WORLD
    tariff = load_tariff(np.random.default_rng(1)) if comm.rank == 0 else None
    comm.Barrier()
    cuts = settle(comm, tariff, np.random.default_rng(50 + comm.rank))
    wasted = comm.allreduce(sum(broadcasts[1:])) // comm.size
    write(
        tile(cuts, lambda i: "batch+total" if i % 50 == 49 else "batch"),
        unit="batch",
        limiting="communication",
        rank=comm.rank,
        phases_ns=clock,
        problem=problem(
            "the tariff, which never changes, is broadcast with every batch", "tariff_shuffle.py:current_tariff",
            "communication", wasted_ns=wasted,
        ),
    )  # fmt: skip


if __name__ == "__main__":
    main()
