# run: mpirun -n 3
"""A manager and two workers search a bank of filters: who is free asks for a candidate and sends back its score.

Messages are pickled dictionaries, as with lower-case send and recv. Planted: after handing out a candidate, the manager
waits for that very worker's score before it listens to the other one, so that the two workers take turns: one works
while the other waits for an answer to its question. Truth: 140 candidates on rank 0, 70 on each worker (they
alternate); limited by synchronisation. With both at work at once, half of the manager's waits for scores would be
saved, which is measured there and told to the workers, whose loops would end so much earlier as well.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import time

import numpy as np
from mpi4py import MPI
from truth import problem, tile, write

READY, TASK, SCORE, STOP = range(4)
CANDIDATES = 140


def planted(wasted):
    return problem(
        "the manager waits for one worker's score before it hands out the next candidate",
        "filter_bank_manager.py:manage",
        "synchronisation",
        wasted_ns=wasted,
    )


def manage(comm):
    rng = np.random.default_rng(5)
    best = None
    status = MPI.Status()
    waiting = scoring = 0
    comm.Barrier()
    cuts = [time.monotonic_ns()]
    for number in range(CANDIDATES):
        candidate = {"number": number, "low": rng.uniform(0.01, 0.1), "high": rng.uniform(0.15, 0.45)}
        t = time.monotonic_ns()
        comm.recv(source=MPI.ANY_SOURCE, tag=READY, status=status)
        comm.send(candidate, dest=status.Get_source(), tag=TASK)
        handed = time.monotonic_ns()
        answer = comm.recv(source=status.Get_source(), tag=SCORE)
        waiting += time.monotonic_ns() - t
        scoring += time.monotonic_ns() - handed
        if best is None or answer["score"] > best["score"]:
            best = answer
        cuts.append(time.monotonic_ns())
    for _ in range(comm.Get_size() - 1):
        comm.recv(source=MPI.ANY_SOURCE, tag=READY, status=status)
        comm.send(None, dest=status.Get_source(), tag=STOP)
    print(f"best filter {best['number']}, score {best['score']:.4f}")
    write(
        tile(cuts, "candidate"),
        unit="candidate handed out",
        limiting="synchronisation",
        limiting_also=["communication"],
        phases_ns={"communication": waiting},
        problem=planted(comm.bcast(scoring // (comm.Get_size() - 1) * (comm.Get_size() - 2), root=0)),
    )


def score(candidate, signals, clean):
    frequencies = np.fft.rfftfreq(signals.shape[1])
    window = (frequencies > candidate["low"]) & (frequencies < candidate["high"])
    filtered = np.fft.irfft(np.fft.rfft(signals, axis=1) * window, axis=1)
    return float(np.corrcoef(filtered.ravel(), clean.ravel())[0, 1])


def work(comm):
    rank = comm.Get_rank()
    rng = np.random.default_rng(1)
    time_axis = np.arange(1 << 13)
    clean = np.sin(2 * np.pi * 0.12 * time_axis + rng.uniform(0, 6, (48, 1)))
    signals = clean + rng.standard_normal(clean.shape)
    status = MPI.Status()
    asking = waits = 0
    comm.Barrier()
    cuts = [time.monotonic_ns()]
    while True:
        t = time.monotonic_ns()
        comm.send(None, dest=0, tag=READY)
        candidate = comm.recv(source=0, tag=MPI.ANY_TAG, status=status)
        asked = time.monotonic_ns() - t
        if status.Get_tag() == STOP:
            break
        asking += asked
        result = {"number": candidate["number"], "score": score(candidate, signals, clean)}
        t = time.monotonic_ns()
        comm.send(result, dest=0, tag=SCORE)
        waits += time.monotonic_ns() - t
        cuts.append(time.monotonic_ns())
    write(
        tile(cuts, "candidate"),
        unit="candidate scored",
        limiting="synchronisation",
        limiting_also=["communication", "starvation", "operators"],
        phases_ns={"communication": asking + waits},
        problem=planted(comm.bcast(None, root=0)),
        rank=rank,
    )


if __name__ == "__main__":
    world = MPI.COMM_WORLD
    if world.Get_rank() == 0:
        manage(world)
    else:
        work(world)
