"""A loop of two states that is entered at either of them, as state machines and unstructured jumps do (irreducible)."""

import os
import random
import time

begins = []


def charge(level):
    return level + sum(i % 3 for i in range(300)) % 5 + 1


def discharge(level):
    return level - sum(i % 5 for i in range(300)) % 3 - 1


def cycle(state, turns):
    level = 0
    for _ in range(turns):
        if state == "charge":
            begins.append(time.monotonic_ns())
            level = charge(level)
            state = "discharge"
        level = discharge(level)
        state = "charge"
    return level


def main():
    random.seed(5)
    total = sum(cycle(random.choice(["charge", "discharge"]), random.randint(6, 24)) for _ in range(8))
    print(total)
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"cycle {ns}\n" for ns in begins)


if __name__ == "__main__":
    main()
