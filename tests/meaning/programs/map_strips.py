"""Stitches a map: for each strip four tiles are fetched by a thread pool, then joined and shaded by the main thread.

A tile comes from a server that needs 12 ms (slept here). Planted: all threads hold the store's one lock while they
wait for the server, so four fetches follow each other instead of running together. Truth: 90 strips; limited by the
lock, in `TileStore.fetch`; the gain is the measured wait for the lock of the last of each four.
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from truth import problem, tile, write

STRIPS, TILES, SIDE = 90, 4, 160


class TileStore:
    def __init__(self):
        self.lock = threading.Lock()
        self.fetched = {}
        rng = np.random.default_rng(1)
        self.terrain = rng.normal(0, 1, (SIDE, SIDE)).cumsum(axis=0).cumsum(axis=1)

    def download(self, row, column):
        time.sleep(0.012)
        return np.roll(self.terrain, (row, 7 * column), axis=(0, 1))

    def fetch(self, row, column):
        asked = time.monotonic_ns()
        with self.lock:
            waited = time.monotonic_ns() - asked
            if (row, column) not in self.fetched:
                self.fetched[row, column] = self.download(row, column)
            return self.fetched.pop((row, column)), waited


def shade(heights):
    north, east = np.gradient(heights)
    slope = np.arctan(np.hypot(north, east))
    aspect = np.arctan2(-north, east)
    light = np.sin(0.8) * np.cos(slope) + np.cos(0.8) * np.sin(slope) * np.cos(2.4 - aspect)
    return (255 * np.clip(light, 0, 1)).astype(np.uint8)


def main():
    store = TileStore()
    brightness = []
    fetching = locked = 0
    with ThreadPoolExecutor(max_workers=TILES) as pool:
        cuts = [time.monotonic_ns()]
        for row in range(STRIPS):
            t = time.monotonic_ns()
            answers = list(pool.map(store.fetch, [row] * TILES, range(TILES)))
            fetching += time.monotonic_ns() - t
            locked += max(waited for _, waited in answers)
            strip = shade(np.hstack([heights for heights, _ in answers]))
            brightness.append(strip.mean())
            cuts.append(time.monotonic_ns())
    print(f"{STRIPS} strips, mean brightness {np.mean(brightness):.1f}")
    write(
        tile(cuts, "strip"),
        unit="strip",
        limiting="lock",
        levels={"tile": STRIPS * TILES},
        phases_ns={"fetch": fetching},
        problem=problem(
            "the store's lock is held during a download, so downloads follow each other",
            "map_strips.py:TileStore.fetch",
            "lock",
            wasted_ns=locked,
        ),
    )


if __name__ == "__main__":
    main()
