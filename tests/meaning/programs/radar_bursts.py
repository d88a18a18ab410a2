"""Range-Doppler processing of a radar: bursts of pulses are compressed by FFT, turned into Doppler, and searched.

The loop is a `while` with an assignment in `Processor.run`; a line is printed at every 40th burst. Planted: the
matched filter's FFTs have as many points as the echo and the chirp need, which is a prime number (4993 + 1015 - 1 =
6007), so that each of them costs several times as much as one padded to a quick length. Truth: 340 bursts, limited by
operators, in `Processor.compress`; the gain is measured against the same compression with padded lengths, run after
the loop on one burst. Taking a burst from the receiver's memory is `data`.
"""

import time

import numpy as np
from scipy import fft, ndimage
from truth import problem, tile, write

PULSES, SAMPLES, CHIRP = 32, 4993, 1015


class Receiver:
    """Plays back a recording: a block of echoes, a little later in each burst."""

    def __init__(self, bursts, seed=21):
        rng = np.random.default_rng(seed)
        phase = np.pi * 0.35 * np.arange(CHIRP) ** 2 / CHIRP
        self.chirp = np.exp(1j * phase).astype(np.complex64)
        noise = rng.standard_normal((PULSES, 2 * SAMPLES, 2)).astype(np.float32)
        self.memory = noise.view(np.complex64)[..., 0]
        for delay, speed, strength in [(900, 0.11, 0.5), (2300, -0.2, 0.4), (3400, 0.31, 0.7), (6100, 0.05, 0.6)]:
            turn = np.exp(2j * np.pi * speed * np.arange(PULSES))[:, None]
            self.memory[:, delay : delay + CHIRP] += strength * turn * self.chirp
        self.left = bursts

    def next(self):
        if self.left == 0:
            return None
        self.left -= 1
        start = 20 * (self.left % 200)
        echo = self.memory[:, start : start + SAMPLES] / np.float32(np.sqrt(2))
        return echo - echo.mean(axis=1, keepdims=True)


class Processor:
    def __init__(self, chirp):
        self.chirp = chirp
        self.window = np.hanning(PULSES).astype(np.float32)[:, None]
        self.clock = {"data": 0, "compress": 0, "doppler": 0, "detect": 0}
        self.cuts, self.found = [], []

    def compress(self, echo, points=None):
        points = points or SAMPLES + CHIRP - 1
        reference = np.conj(fft.fft(self.chirp, points))
        return fft.ifft(fft.fft(echo, points, axis=1) * reference, axis=1)[:, :SAMPLES]

    def doppler(self, ranges):
        spectrum = fft.fftshift(fft.fft(ranges * self.window, axis=0), axes=0)
        return spectrum.real**2 + spectrum.imag**2

    def detect(self, power, factor=14.0):
        around = ndimage.uniform_filter1d(power, 65, axis=1)
        doppler, distance = np.nonzero(power > factor * around)
        strengths = power[doppler, distance]
        return sorted(zip(strengths.tolist(), doppler.tolist(), distance.tolist(), strict=True), reverse=True)[:20]

    def run(self, receiver):
        self.cuts.append(time.monotonic_ns())
        while (echo := receiver.next()) is not None:
            t0 = time.monotonic_ns()
            ranges = self.compress(echo)
            t1 = time.monotonic_ns()
            power = self.doppler(ranges)
            t2 = time.monotonic_ns()
            self.found.append(self.detect(power))
            t3 = time.monotonic_ns()
            for name, span in zip(self.clock, (t0 - self.cuts[-1], t1 - t0, t2 - t1, t3 - t2)):
                self.clock[name] += span
            if len(self.found) % 40 == 0:
                strength, doppler, distance = self.found[-1][0]
                print(f"burst {len(self.found)}: strongest at range {distance}, Doppler {doppler} ({strength:.0f})")
            self.cuts.append(time.monotonic_ns())


def main():
    receiver = Receiver(bursts=340)
    processor = Processor(receiver.chirp)
    processor.run(receiver)

    again = Receiver(1)
    echo, quick = again.next(), fft.next_fast_len(SAMPLES + CHIRP - 1)
    assert np.allclose(processor.compress(echo), processor.compress(echo, quick), atol=1e-2)
    t = time.monotonic_ns()
    for _ in range(15):
        processor.compress(echo, quick)
    padded = (time.monotonic_ns() - t) // 15
    write(
        tile(processor.cuts, "burst"),
        unit="burst",
        limiting="operators",
        phases_ns=processor.clock,
        problem=problem(
            f"FFTs of 6007 points, a prime number; {quick} would be quick",
            "radar_bursts.py:Processor.compress",
            "operators",
            wasted_ns=processor.clock["compress"] - 340 * padded,
        ),
    )


if __name__ == "__main__":
    main()
