"""An ensemble Kalman filter follows a satellite; a recorder thread packs the track so far for a ground station.

The recorder takes the track's lock for the whole of its packing (a real compression, some 50 ms), and each assimilation
has to append under the same lock. Truth: 120 assimilations, limited by the lock; a copy of the track could be packed
outside of it, so the gain is the measured wait to append.
"""

import threading
import time
import zlib

import numpy as np
from truth import problem, tile, write


class Track:
    def __init__(self, width, depth=12_000):
        self.lock = threading.Lock()
        self.rows = np.random.default_rng(0).normal(size=(depth, width)).round(3)
        self.place = self.waited = 0

    def append(self, state):
        asked = time.monotonic_ns()
        with self.lock:
            self.waited += time.monotonic_ns() - asked
            self.rows[self.place % len(self.rows)] = state
            self.place += 1


class Recorder(threading.Thread):
    def __init__(self, track):
        super().__init__()
        self.track, self.done, self.sent = track, threading.Event(), 0

    def run(self):
        while not self.done.wait(0.001):
            with self.track.lock:
                self.sent += len(zlib.compress(self.track.rows.tobytes()))


class Filter:
    def __init__(self, members=10_000, size=6):
        self.rng = np.random.default_rng(5)
        self.truth = np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.1])
        self.ensemble = self.truth + 0.05 * self.rng.normal(size=(members, size))

    def propagate(self, states, dt=0.002, substeps=10):
        position, velocity = states[..., :3].copy(), states[..., 3:].copy()
        for _ in range(substeps):
            velocity -= dt * position / (position**2).sum(-1, keepdims=True) ** 1.5
            position += dt * velocity
        return np.concatenate([position, velocity], axis=-1)

    def assimilate(self):
        self.truth = self.propagate(self.truth)
        self.ensemble = self.propagate(self.ensemble)
        cov = np.cov(self.ensemble.T)
        gain = cov[:, :3] @ np.linalg.inv(cov[:3, :3] + 1e-4 * np.eye(3))
        seen = self.truth[:3] + 0.01 * self.rng.normal(size=(len(self.ensemble), 3))
        self.ensemble += (seen - self.ensemble[:, :3]) @ gain.T
        return self.ensemble.mean(axis=0)


def follow(count=120):
    satellite, track = Filter(), Track(6)
    recorder = Recorder(track)
    recorder.start()
    cuts = [time.monotonic_ns()]
    for _ in range(count):
        track.append(satellite.assimilate())
        cuts.append(time.monotonic_ns())
    recorder.done.set()
    recorder.join()
    print(f"packed {recorder.sent / 1e6:.1f} MB, now at {track.rows[track.place - 1].round(3)}")
    return cuts, track.waited


cuts, waited = follow()
planted = problem("the recorder packs under the track's lock", "orbit_filter.py:Recorder.run", "lock", wasted_ns=waited)
write(tile(cuts, "assimilation"), unit="assimilation", limiting="lock", problem=planted)
