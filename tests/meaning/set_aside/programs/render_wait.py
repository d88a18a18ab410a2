"""Sends scenes to a renderer, another process, and looks again and again whether the picture has come.

The renderer takes 66 to 72 ms for a scene (slept: it stands for a far machine) and leaves the picture in a folder.
Planted: `wait_for` doubles its pause between looks (20, 40, 80 ms), so that most pictures lie there for a long time
before they are seen. Truth: 55 scenes, looks are an inner level whose number may vary; limited by synchronisation, as
the program only waits for the renderer (one may say io, data or starvation). The gain is the measured time from the
picture's being there to its being seen. Phases: `send`, `wait`, `use`.
"""

import multiprocessing
import os
import statistics
import tempfile
import time
from pathlib import Path

from truth import problem, tile, write

SCENES = 55


def renderer(folder, orders):
    while (scene := orders.recv()) is not None:
        time.sleep(0.066 + 0.001 * (scene * 5 % 7))
        rows = [" ".join(str((x * y + scene) % 255) for x in range(96)) for y in range(64)]
        fresh = folder / f"{scene}.part"
        fresh.write_text(f"{time.monotonic_ns()}\n" + "\n".join(rows))
        os.replace(fresh, folder / f"{scene}.pgm")


def wait_for(path, patience=10.0):
    deadline = time.monotonic() + patience
    pause = 0.02
    while not path.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(path)
        time.sleep(pause)
        pause = min(2 * pause, 0.64)


def brightness(text):
    return statistics.fmean(int(value) for value in text.split())


def main():
    sending = waiting = using = late = 0
    levels = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        there, orders = multiprocessing.Pipe(duplex=False)
        farm = multiprocessing.Process(target=renderer, args=(folder, there))
        farm.start()
        cuts = [time.monotonic_ns()]
        for scene in range(SCENES):
            orders.send(scene)
            a = time.monotonic_ns()
            path = folder / f"{scene}.pgm"
            wait_for(path)
            b = time.monotonic_ns()
            done, picture = path.read_text().split("\n", 1)
            levels.append(brightness(picture))
            path.unlink()
            late += b - int(done)
            sending += a - cuts[-1]
            waiting += b - a
            cuts.append(time.monotonic_ns())
            using += cuts[-1] - b
        orders.send(None)
        farm.join()
    print(f"{len(levels)} pictures, mean brightness {statistics.fmean(levels):.2f}")
    write(
        tile(cuts, "scene"),
        unit="scene",
        limiting="synchronisation",
        limiting_also=["io", "data", "starvation"],
        phases_ns={"send": sending, "wait": waiting, "use": using},
        problem=problem(
            "pauses between looks grow too long for pictures that come soon",
            "render_wait.py:wait_for",
            "synchronisation",
            wasted_ns=late,
        ),
    )


if __name__ == "__main__":
    main()
