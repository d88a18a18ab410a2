"""Scores hydrophone clips for whale calls: wave files are read, turned into mel spectra with NumPy, and judged by a small CNN.

Truth: 40 batches of 6 clips, limited by data: `mel_filters` builds the same triangles with nested loops for every clip. Building them
once would save the measured time of all calls but the first. The loops are Python: one may say python.
"""

import tempfile
import time
import wave
from pathlib import Path

import numpy as np
import torch
from torch import nn
from truth import problem, tile, write

RATE, WINDOW, HOP, BANDS = 8000, 512, 160, 40


def hz_to_mel(hz):
    return 2595 * np.log10(1 + hz / 700)


def record(folder, count):
    rng = np.random.default_rng(6)
    t = np.arange(RATE) / RATE
    for i in range(count):
        sound = 0.2 * rng.standard_normal(RATE)
        if i % 3 == 0:
            sound += np.sin(2 * np.pi * (200 + 300 * t) * t)
        with wave.open(str(folder / f"clip{i:04d}.wav"), "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(RATE)
            out.writeframes((sound * 8000).astype("<i2").tobytes())


class Features:
    def __init__(self):
        self.building = []

    def mel_filters(self):
        edges = 700 * (10 ** (np.linspace(0, hz_to_mel(RATE / 2), BANDS + 2) / 2595) - 1)
        bins = [float(edge) * WINDOW / RATE for edge in edges]
        filters = np.zeros((BANDS, WINDOW // 2 + 1), np.float32)
        for band in range(BANDS):
            low, centre, high = bins[band : band + 3]
            for k in range(WINDOW // 2 + 1):
                rise = (k - low) / (centre - low)
                fall = (high - k) / (high - centre)
                filters[band, k] = max(0.0, min(rise, fall))
        return filters

    def __call__(self, path):
        with wave.open(str(path), "rb") as clip:
            sound = np.frombuffer(clip.readframes(clip.getnframes()), "<i2").astype(np.float32) / 32768
        frames = np.lib.stride_tricks.sliding_window_view(sound, WINDOW)[::HOP] * np.hanning(WINDOW).astype(np.float32)
        power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
        begin = time.monotonic_ns()
        filters = self.mel_filters()
        self.building.append(time.monotonic_ns() - begin)
        return np.log(power.astype(np.float32) @ filters.T + 1e-6).T


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 2),
    )  # fmt: skip


@torch.no_grad()
def score_folder(model, features, folder, batch=6):
    clips = sorted(folder.glob("*.wav"))
    scores = {}
    data = forward = 0
    cuts = [time.monotonic_ns()]
    for start in range(0, len(clips), batch):
        names = clips[start : start + batch]
        spectra = torch.from_numpy(np.stack([features(name) for name in names])).unsqueeze(1)
        t0 = time.monotonic_ns()
        called = model(spectra).softmax(1)[:, 1]
        t1 = time.monotonic_ns()
        for name, one in zip(names, called.tolist(), strict=True):
            scores[name.name] = one
        data += t0 - cuts[-1]
        forward += t1 - t0
        cuts.append(time.monotonic_ns())
    return scores, cuts, {"data": data, "forward": forward}


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(6)
    with tempfile.TemporaryDirectory() as name:
        record(Path(name), 240)
        features = Features()
        scores, cuts, phases = score_folder(build_model().eval(), features, Path(name))
    print(f"{len(scores)} clips, mean {sum(scores.values()) / len(scores):.3f}")
    write(
        tile(cuts, "batch"),
        unit="batch",
        limiting="data",
        limiting_also=["python"],
        levels={"clip": 240},
        phases_ns=phases,
        problem=problem(
            "the same mel filters are built again for every clip, in nested Python loops",
            "whale_call_scoring.py:Features.mel_filters",
            "data",
            wasted_ns=sum(features.building[1:]),
        ),
    )
