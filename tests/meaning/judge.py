"""What strobe finds in the programs and traces here, beside what they know: `python -m tests.meaning.judge [NAME]`.

A table: steps found and true, whether they lie in the same places, by how many points each phase is off, and what
limits the loop. A step lies in its place if it and a true step share more than half of the time of both together.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import strobe
from strobe.api.imports import opened
from strobe.model.plugins import Finding
from strobe.present.summary import summarise
from tests.meaning.verify import command, environment, run_trace

HERE = Path(__file__).parent
PHASES = {
    "data": "data_wait_ns",
    "forward": "forward_ns",
    "backward": "backward_ns",
    "optimizer": "optimizer_ns",
    "validation": "validation_ns",
}
# Kinds of a verdict in words of truth.LIMITS.
LIMITS = {
    "input-bound": {"data"},
    "transfer-bound": {"data"},
    "compute-bound": {"operators", "gpu", "balanced"},
    "communication-bound": {"communication", "balanced"},
    "imbalanced": {"straggler"},
    "python-bound": {"python", "launch", "balanced"},
    "host-bound": {"python", "launch", "synchronisation"},
    "lock-bound": {"lock", "synchronisation"},
    "io-bound": {"io"},
    "gc-bound": {"garbage-collection"},
    "gil-bound": {"lock", "python"},
    "starved": {"starvation"},
    "waiting": {"synchronisation", "communication"},
}


def record(path: Path, folder: Path, keep: str) -> tuple[dict[int, dict], Path]:
    """Run a program under strobe; return its truth by rank, and the trace."""
    truths, trace = folder / "truth", folder / "run.strobe"
    truths.mkdir()
    start = command(path)
    words = [sys.executable, "-m", "strobe", "run", "--quiet", "--keep", keep, "-o", str(trace), "--", *start]
    done = subprocess.run(words, cwd=folder, env=environment(truths), capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise SystemError(done.stderr[-2000:])
    read = [json.loads(each.read_text()) for each in sorted(truths.iterdir())]
    return {each["rank"]: each for each in read}, trace


def written(path: Path, folder: Path) -> tuple[dict[int, dict], Path]:
    """Let a trace's writer write; return its truth by rank, and the file or, of several ranks, the folder."""
    truths, _ = run_trace(path, folder)
    files = list(folder.glob("*.json"))
    cache = folder.with_name(f"{folder.name}-cache")
    return truths, opened(files[0] if len(files) == 1 else folder, cache=cache, talk=False)


def in_place(truth: list[tuple[int, int]], found: list[tuple[int, int]]) -> int:
    """The number of true steps that a found one shares more than half of the time with."""
    matched = at = 0
    for begin, end in truth:
        while at < len(found) and found[at][1] <= begin:
            at += 1
        best = 0.0
        for other_begin, other_end in found[at : at + 3]:
            shared = min(end, other_end) - max(begin, other_begin)
            best = max(best, shared / max(1, max(end, other_end) - min(begin, other_begin)))
        matched += best > 0.5
    return matched


def judge(path: Path, keep: str) -> dict[str, object]:
    """One row of the table."""
    with tempfile.TemporaryDirectory() as temporary:
        truths, folder = (
            written(path, Path(temporary)) if path.parent.name == "traces" else record(path, Path(temporary), keep)
        )
        truth = truths[0]
        trace = strobe.open(folder)
        steps = trace.ask("steps").to_pylist()
        process = min((int(row["process"]) for row in steps), default=0)
        steps = [row for row in steps if row["process"] == process]
        beside = set(truth["beside"])
        own = list[tuple[int, int]]()
        for each in truth["steps"]:  # a validation belongs to the step before it
            begin_ns = own.pop()[0] if own and each["class"] in beside else each["begin_ns"]
            own.append((begin_ns, each["end_ns"]))
        found = [
            (row["start_ns"] + trace.zero_ns, row["start_ns"] + trace.zero_ns + row["duration_ns"]) for row in steps
        ]
        summary = summarise(trace)
        verdict = summary.verdict
    whole = sum(each["end_ns"] - each["begin_ns"] for each in truth["steps"])
    taken = sum(row["duration_ns"] for row in steps)
    off = {}
    known = truth["phases_ns"] or {}
    for phase, column in PHASES.items():
        if taken and (phase in known or ("backward" in known and phase != "validation")):
            share = sum(row[column] for row in steps) / taken
            off[phase] = 100 * (share - known.get(phase, 0) / whole)
    kinds = LIMITS.get(verdict.kind, set())
    return {
        "name": path.stem,
        "true": truth["count"],
        "found": len(found),
        "in place": in_place(own, found),
        "off": {phase: round(points, 1) for phase, points in off.items() if abs(points) > 3},
        "limiting": truth["limiting"],
        "verdict": verdict.kind,
        "right": bool(kinds & {truth["limiting"], *truth["limiting_also"]}),
        "confidence": verdict.confidence,
        "text": verdict.text,
        "problem": judged_problem(truth["problem"], verdict.text, summary.findings),
        "findings": [f"{each.rule}: {each.what} [{each.where}]" for each in summary.findings],
    }


def judged_problem(problem: dict | None, verdict: str, findings: tuple[Finding, ...]) -> str:
    """ "", or what is wrong with what is said about a planted problem, or about a healthy program."""
    gains = [each for each in findings if not each.informative]
    if problem is None:
        return f"FALSE ADVICE: {gains[0].what}" if gains else ""
    place = problem["where"].rpartition(":")[2].rpartition(".")[2]
    first = [f"{each.what} {each.where} {each.do}" for each in (*gains, *findings)[:1]]
    return "" if any(place in text for text in (verdict, *first)) else f"NOT NAMED: {problem['where']}"


def main() -> int:
    """Judge the cases that are named, or all that are not set aside."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--set-aside", action="store_true", help="those that are set aside, not the others")
    parser.add_argument("--keep", default="10", help="as of strobe run")
    parser.add_argument("--verbose", action="store_true", help="verdict and findings of all, not only where wrong")
    arguments = parser.parse_args()
    folder = HERE / "set_aside" if arguments.set_aside else HERE
    cases = [*sorted(folder.glob("programs/*.py")), *sorted(folder.glob("traces/*.py"))]
    paths = [path for path in cases if not arguments.names or path.stem in arguments.names]
    right = dict.fromkeys(("steps", "phases", "limiting", "problem"), 0)
    for path in paths:
        try:
            row = judge(path, arguments.keep)
        except (SystemError, subprocess.TimeoutExpired, strobe.StrobeError) as error:
            print(f"{path.stem:<32} failed: {str(error)[-200:]}", flush=True)
            continue
        steps_right = abs(int(row["found"]) - int(row["true"])) <= 1 and int(row["in place"]) >= 0.95 * int(row["true"])
        right["steps"] += steps_right
        right["phases"] += not row["off"]
        right["limiting"] += bool(row["right"])
        print(
            f"{row['name']:<32} steps {row['found']:>5} of {row['true']:<5} in place {row['in place']:<5}"
            f" {'' if steps_right else 'WRONG':<6} {row['limiting']:<12} {row['verdict']:<20}"
            f" {'' if row['right'] else 'WRONG':<6} {row['off'] or ''}",
            flush=True,
        )
        right["problem"] += not row["problem"]
        if arguments.verbose or row["problem"] or not row["right"]:
            print(f"    {row['confidence']}: {row['text']}", *row["findings"], row["problem"], sep="\n    ", flush=True)
    print(f"of {len(paths)}: " + ", ".join(f"{what} right in {count}" for what, count in right.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
