"""Damages recorded traces and asks them everything: each answer is an answer or one sentence, and the loss is stated.

    ./dev bench damage FOLDER.strobe... --count 1000      by kind of damage, how many; what went wrong, once each

The traces are best folded ones of several processes (`strobe run --keep 5`). Each damaged one is asked in a process of
its own, which may take 1 GB, and 30 s for each answer. Where a figure differs from that of the sound trace, a loss must
be stated. Damaged folders with findings are kept in build/damage.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
os.environ.pop("STROBE_CACHE", None)

from strobe.trace.archive import process_files  # noqa: E402
from strobe.trace.processes.process_reader import RecordedProcess  # noqa: E402
from tests.damage.damages import DAMAGES, damage  # noqa: E402
from tests.damage.every_answer import Answers, answers_of, findings  # noqa: E402

_MOST_KB, _MOST_S = 1_000_000, 300


def prepared(trace: Path, to: Path, *, made: bool) -> Path:
    """Copy a trace; `made`: with tiles, and an index of each block file."""
    ignored = () if made else ("*.tiles", "*.index", "summary.json")
    folder = Path(shutil.copytree(trace, to, ignore=shutil.ignore_patterns(*ignored)))
    for files in process_files(folder) if made else ():
        RecordedProcess(files).core.write_index()
    return folder


def in_a_process(folder: Path, sound: Answers, verbs: tuple[int, int]) -> list[str]:
    """Return the findings of a damaged trace, with the end, memory and time of the process that was asked."""
    report = folder.parent / "findings.json"
    child = os.fork()
    if not child:
        signal.alarm(_MOST_S)
        report.write_text(json.dumps(findings(folder, sound, verbs=verbs)))
        os._exit(0)
    _, status, used = os.wait4(child, 0)
    if status:
        return [f"the process ended with status {status}"]
    found: list[str] = json.loads(report.read_text())
    return found + [f"{used.ru_maxrss} kB of memory"] * (used.ru_maxrss > _MOST_KB)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="begin at this one")
    parser.add_argument("--kinds", nargs="*", default=list(DAMAGES), choices=list(DAMAGES))
    parser.add_argument("--every", type=int, default=5, help="try every Nth verb, another one each time")
    arguments = parser.parse_args()
    done, wrong, begun = Counter[str](), Counter[str](), time.monotonic()
    kept, answers = ROOT / "build/damage", dict[tuple[Path, bool], Answers]()
    with tempfile.TemporaryDirectory(prefix="strobe-damage-") as work:
        place = Path(work)
        for number in range(arguments.first, arguments.first + arguments.count):
            random = Random(arguments.seed * 1_000_003 + number)
            trace = arguments.traces[number % len(arguments.traces)]
            kind = arguments.kinds[number // len(arguments.traces) % len(arguments.kinds)]
            made, folder = random.random() < 0.5, place / trace.name
            if (trace, made) not in answers:
                answers[trace, made] = answers_of(prepared(trace, folder, made=made), verbs=(1 << 20, 1))
                shutil.rmtree(folder)
            target = damage(prepared(trace, folder, made=made), kind, random)
            at = place / f"{number}.damaged"
            shutil.copytree(folder, at)
            found = in_a_process(folder, answers[trace, made], (number % arguments.every, arguments.every))
            done[kind] += 1
            done[f"{kind}: with findings"] += bool(found)
            for each in found:
                wrong[each.replace(work, "")] += 1
            if found:
                name = hashlib.sha256(found[0].replace(work, "").encode()).hexdigest()[:8]
                print(f"{number} {kind} of {target.suffix}, {trace.name}, {name}: {found[0][:300]}", flush=True)
                if not (kept / name).exists():
                    shutil.copytree(at, kept / name / trace.name)
            shutil.rmtree(at)
            shutil.rmtree(folder)
    print(f"{sum(done[kind] for kind in arguments.kinds)} damages in {time.monotonic() - begun:.0f} s")
    for kind in arguments.kinds:
        print(f"  {kind}: {done[kind]}, {done[f'{kind}: with findings']} with findings")
    for each, count in wrong.most_common():
        print(f"{count} x {each}")


if __name__ == "__main__":
    main()
