"""CPU time of commands that only list, beside a bare interpreter; what recording adds to a program of half a second.

./dev bench startup [--rounds 20]
"""

import argparse
import sys

from measure import STROBE, checked, folder, interleaved, middle, table

SHORT = """
import time
def work(n):
    s = 0
    for i in range(n):
        s += i * i % 7
while time.process_time() < 0.45:
    work(20000)
"""
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "strobe --help": [STROBE, "--help"],
    "strobe --version": [STROBE, "--version"],
    "strobe run --help": [STROBE, "run", "--help"],
    "python short.py": [sys.executable, "short.py"],
    "strobe run short.py": [STROBE, "run", "short.py"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    spent: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with folder() as place:
        (place / "short.py").write_text(SHORT)
        for _, name in interleaved(options.rounds, list(COMMANDS)):
            spent[name].append(1000 * checked(COMMANDS[name], place).cpu_s)
    bare = spent["python -c pass"]
    print(f"\n## Start-up, {options.rounds} rounds, CPU milliseconds\n")
    print(
        table(
            [
                {
                    "command": f"`{name}`",
                    "median": f"{middle(values):.1f}",
                    "least": f"{min(values):.1f}",
                    "ratio of medians": f"{middle(values) / middle(bare):.2f}",
                }
                for name, values in spent.items()
            ]
        )
    )


if __name__ == "__main__":
    main()
