"""The loop of program.py with its steps told: most of them are folded into statistics while it runs."""

import strobe
from tests.ui.program import train_step

STEPS = 120


def train() -> None:
    for step in range(STEPS):
        strobe.step()
        train_step(step)


if __name__ == "__main__":
    train()
