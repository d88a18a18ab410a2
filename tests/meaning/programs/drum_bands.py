"""A drum skin: the wave equation on a 900 x 900 grid, whose rows two threads of a pool advance band by band.

Each time step of the main thread submits four bands and waits for all of them, then the skin's states change places.
NumPy lets go of the interpreter's lock, so two cores share the work. Healthy and compute-bound in NumPy, on the pool's
threads; the main thread only waits. Truth: 1000 time steps, 4000 bands inside.
"""

import time
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
from truth import tile, write

SIDE, STEPS, BANDS = 900, 1000, 4


def advance_band(before, now, after, first, last, speed=0.2, damping=0.001):
    """Rows first to last of the next state."""
    around = now[first - 1 : last - 1, 1:-1] + now[first + 1 : last + 1, 1:-1]
    around += now[first:last, :-2]
    around += now[first:last, 2:]
    here = now[first:last, 1:-1]
    around -= 4 * here
    around *= speed
    around += (2 - damping) * here
    around -= (1 - damping) * before[first:last, 1:-1]
    after[first:last, 1:-1] = around


def strike():
    y, x = np.mgrid[-1 : 1 : SIDE * 1j, -1 : 1 : SIDE * 1j]
    return np.exp(-((x - 0.2) ** 2 + (y + 0.1) ** 2) / 0.01)


def main():
    now = strike()
    before, after = now.copy(), np.zeros_like(now)
    rows = np.linspace(1, SIDE - 1, BANDS + 1).astype(int)
    waiting = 0
    heard = []
    with ThreadPoolExecutor(max_workers=2, thread_name_prefix="band") as pool:
        cuts = [time.monotonic_ns()]
        for step in range(STEPS):
            futures = [pool.submit(advance_band, before, now, after, a, b) for a, b in zip(rows[:-1], rows[1:])]
            t = time.monotonic_ns()
            wait(futures)
            waiting += time.monotonic_ns() - t
            for future in futures:
                future.result()
            before, now, after = now, after, before
            heard.append(now[SIDE // 3, SIDE // 3])
            if step % 200 == 199:
                print(f"step {step + 1}: amplitude {max(map(abs, heard[-100:])):.4f}")
            cuts.append(time.monotonic_ns())
    write(
        tile(cuts, "time step"),
        unit="time step",
        limiting="operators",
        limiting_also=["synchronisation"],
        levels={"band": BANDS * STEPS},
        phases_ns={"waiting": waiting},
    )


if __name__ == "__main__":
    main()
