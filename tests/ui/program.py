"""What the tests of the page look at: a loop of 60 steps, one of them slow, a helper thread, and many short calls."""

import threading
import time

SLOW_STEP = 41


def fetch(step: int) -> None:
    time.sleep(0.04 if step == SLOW_STEP else 0.001)


def layer() -> int:
    return sum(range(50))


def forward() -> None:
    for _ in range(40):
        layer()
    time.sleep(0.002)


def backward() -> None:
    for _ in range(60):
        layer()
    time.sleep(0.002)


def train_step(step: int) -> None:
    fetch(step)
    forward()
    backward()


def watch(stop: threading.Event) -> None:
    while not stop.wait(0.005):
        layer()


def main() -> None:
    stop = threading.Event()
    helper = threading.Thread(target=watch, args=(stop,), name="watcher")
    helper.start()
    for step in range(60):
        train_step(step)
    stop.set()
    helper.join()


if __name__ == "__main__":
    main()
