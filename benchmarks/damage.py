"""Damages recorded traces and asks them everything: each answer is an answer or one sentence, and the loss is stated.

    ./dev bench damage FOLDER.strobe... --count 1000      by kind of damage, how many; what went wrong, once each

The traces are best folded ones of several processes (`strobe run --keep 5`). Damaged folders with findings are kept
in build/damage.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
os.environ.pop("STROBE_CACHE", None)

from tests.damage.damages import DAMAGES, HARMLESS  # noqa: E402
from tests.damage.every_answer import findings  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="begin at this one")
    parser.add_argument("--kinds", nargs="*", default=list(DAMAGES), choices=list(DAMAGES))
    parser.add_argument("--short", action="store_true", help="only what the test asks")
    arguments = parser.parse_args()
    done, wrong, begun = Counter[str](), Counter[str](), time.monotonic()
    kept = ROOT / "build/damage"
    for number in range(arguments.first, arguments.first + arguments.count):
        random = Random(arguments.seed * 1_000_003 + number)
        trace = arguments.traces[number % len(arguments.traces)]
        kind = arguments.kinds[number // len(arguments.traces) % len(arguments.kinds)]
        with tempfile.TemporaryDirectory(prefix="strobe-damage-") as work:
            folder = Path(work) / trace.name
            shutil.copytree(trace, folder, ignore=shutil.ignore_patterns("*.tiles", "*.index", "summary.json"))
            target = random.choice(sorted(folder.glob("*.blocks")))
            target.write_bytes(DAMAGES[kind](target.read_bytes(), random))
            found = findings(folder, all_of_them=not arguments.short, stated=kind not in HARMLESS)
            done[kind] += 1
            done[f"{kind}: with findings"] += bool(found)
            for each in found:
                wrong[each.replace(work, "")] += 1
            if found:
                name = hashlib.sha256(found[0].replace(work, "").encode()).hexdigest()[:8]
                if not (kept / name).exists():
                    shutil.copytree(folder, kept / name / trace.name)
                    print(f"{number} {kind} {name}: {found[0]}", flush=True)
    print(f"{sum(done[kind] for kind in arguments.kinds)} damages in {time.monotonic() - begun:.0f} s")
    for kind in arguments.kinds:
        print(f"  {kind}: {done[kind]}, {done[f'{kind}: with findings']} with findings")
    for each, count in wrong.most_common():
        print(f"{count} x {each}")


if __name__ == "__main__":
    main()
