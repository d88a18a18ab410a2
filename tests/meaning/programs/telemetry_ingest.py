"""Sensor blocks are turned into band energies and put into shared tables, which a second thread sends to a collector.

Truth: 300 blocks. `Publisher.run` keeps the tables' lock while it sends (25 ms of waiting for the far end each time), so that
the main thread waits for the lock most of the time; sending a copy outside of the lock would save the measured wait. How long
a block waits depends on where the publisher stands: about every second or third one is held up, nearly the whole 25 ms. One may say synchronisation.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import json
import threading
import time

import numpy as np
from truth import problem, tile, write


class Tables:
    def __init__(self):
        self.lock = threading.Lock()
        self.energy = {}
        self.version = 0


class Publisher(threading.Thread):
    def __init__(self, tables):
        super().__init__(daemon=True)
        self.tables = tables
        self.done = threading.Event()
        self.sent = 0

    def send(self, message):
        self.sent += len(message)
        time.sleep(0.025)  # round trip to the collector

    def run(self):
        while not self.done.wait(0.005):
            with self.tables.lock:
                message = json.dumps(self.tables.energy)
                self.send(message)


class Ingest:
    def __init__(self, tables):
        self.tables = tables
        self.rng = np.random.default_rng(3)
        self.waited = 0

    def block(self, k):
        samples = self.rng.standard_normal((16, 4096))
        power = np.abs(np.fft.rfft(samples * np.hanning(4096), axis=1)) ** 2
        bands = [part.sum() for part in np.array_split(power, 32, axis=1)]
        before = time.monotonic_ns()
        with self.tables.lock:
            self.waited += time.monotonic_ns() - before
            for band, value in enumerate(bands):
                key = f"band{band}"
                self.tables.energy[key] = 0.9 * self.tables.energy.get(key, 0.0) + 0.1 * float(value)
            self.tables.version = k


if __name__ == "__main__":
    tables = Tables()
    publisher = Publisher(tables)
    ingest = Ingest(tables)
    publisher.start()
    cuts = [time.monotonic_ns()]
    for k in range(300):
        ingest.block(k)
        cuts.append(time.monotonic_ns())
    publisher.done.set()
    publisher.join()
    print(f"{publisher.sent} bytes sent, version {tables.version}")
    assert tables.version == 299 and publisher.sent
    write(
        tile(cuts, "block"),
        unit="block",
        limiting="lock",
        limiting_also=["synchronisation"],
        phases_ns={"lock": ingest.waited},
        problem=problem(
            "the publisher keeps the tables' lock while it sends",
            "telemetry_ingest.py:Publisher.run",
            "lock",
            wasted_ns=ingest.waited,
        ),
    )
