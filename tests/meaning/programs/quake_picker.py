"""Finds onsets of earthquakes in a recording: one thread inflates blocks, the main thread filters, one writes picks.

The three are joined by queues; the reader is far quicker than the main thread, so that a block is nearly always at hand,
and the writer has little to write. Healthy, compute-bound in NumPy on the main thread (band-pass by FFT, envelope,
short over long averages). Truth: 180 blocks; `data` is the measured wait for the next block; `picking` ends with the
last channel's onset, and `hand over` is putting the picks into the writer's queue.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import json
import queue
import tempfile
import threading
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from truth import tile, write

BLOCKS, CHANNELS, SAMPLES, RATE = 180, 24, 9000, 100.0


@dataclass
class Pick:
    block: int
    channel: int
    second: float
    ratio: float


def record(path):
    """What a digitiser would have left: a file of deflated blocks, four different ones again and again."""
    rng = np.random.default_rng(11)
    packed = []
    for k in range(4):
        signal = rng.normal(0, 200, (CHANNELS, SAMPLES))
        at = 3000 + 900 * k
        quake = np.exp(-np.arange(SAMPLES - at) / 700) * np.sin(0.4 * np.arange(SAMPLES - at))
        signal[:, at:] += 4000 * rng.random((CHANNELS, 1)) * quake
        packed.append(zlib.compress(signal.astype("<i2").tobytes(), 1))
    with open(path, "wb") as out:
        for number in range(BLOCKS):
            block = packed[number % 4]
            out.write(len(block).to_bytes(4, "little") + block)


def reader(path, blocks):
    with open(path, "rb") as source:
        while head := source.read(4):
            raw = zlib.decompress(source.read(int.from_bytes(head, "little")))
            blocks.put(np.frombuffer(raw, "<i2").reshape(CHANNELS, SAMPLES))
    blocks.put(None)


def writer(path, picks):
    with open(path, "w") as out:
        while (found := picks.get()) is not None:
            for pick in found:
                out.write(json.dumps(vars(pick)) + "\n")


def band_pass(block, low=1.0, high=20.0):
    spectrum = np.fft.rfft(block - block.mean(axis=1, keepdims=True), axis=1)
    frequencies = np.fft.rfftfreq(SAMPLES, 1 / RATE)
    spectrum[:, (frequencies < low) | (frequencies > high)] = 0
    return np.fft.irfft(spectrum, SAMPLES, axis=1)


def running_mean(energy, width):
    total = np.cumsum(energy, axis=1)
    out = np.zeros_like(energy)
    out[:, width:] = (total[:, width:] - total[:, :-width]) / width
    return out


def find_onsets(number, block):
    energy = band_pass(block) ** 2
    short, long = running_mean(energy, 50), running_mean(energy, 1500)
    ratio = np.where(long > 0, short / np.maximum(long, 1e-9), 0)
    ratio[:, :1500] = 0
    found = []
    for channel, values in enumerate(ratio):
        place = int(values.argmax())
        if values[place] > 6:
            found.append(Pick(number, channel, place / RATE, float(values[place])))
    return found


def main():
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "day.bin")
        record(source)
        blocks, picks = queue.Queue(maxsize=6), queue.Queue()
        threads = [
            threading.Thread(target=reader, args=(source, blocks), name="reader"),
            threading.Thread(target=writer, args=(Path(folder, "picks.jsonl"), picks), name="writer"),
        ]
        number = count = waited = picking = handing = 0
        cuts = [time.monotonic_ns()]
        for thread in threads:
            thread.start()
        while (block := blocks.get()) is not None:
            a = time.monotonic_ns()
            found = find_onsets(number, block)
            b = time.monotonic_ns()
            picks.put(found)
            count += len(found)
            number += 1
            waited += a - cuts[-1]
            picking += b - a
            cuts.append(time.monotonic_ns())
            handing += cuts[-1] - b
        picks.put(None)
        for thread in threads:
            thread.join()
    print(f"{count} picks in {number} blocks")
    write(
        tile(cuts, "block"),
        unit="block",
        limiting="operators",
        phases_ns={"data": waited, "picking": picking, "hand over": handing},
    )


if __name__ == "__main__":
    main()
