"""How right the advice is: `python tests/injector/judge.py [--aside] [--recordings FOLDER] [NAME ...]`.

Each program is recorded with its defect (once; a recording in the folder is used again), and its findings are held
against what is known: whether the defect is named first, or among three, and whether the interval of that finding holds
the gain that `measure.py` has measured, as a part of the step. Healthy programs must get no advice with a gain. Prints
a table in Markdown. A finding is right if it names the function or the line of the defect, or has one of the words that
the author of the case expects.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from figures import Judged, sentences, write
from measure import HERE, MPI

STROBE = (sys.executable, "-m", "strobe")


def recording(case: dict, folder: Path) -> Path:
    """Return the recording of a program with its defect; make it if it is not there."""
    switch = "plain" if case["kind"] == "healthy" else "on"
    trace = folder / f"{Path(case['file']).stem}-{switch}-0.strobe"
    if not trace.exists():
        launcher, environment = case["start"].split(), dict(os.environ)
        program = [str(HERE / case["file"]), *case["arguments"][switch]]
        if launcher:
            launcher[0] = str(MPI / "bin" / launcher[0])
            environment |= {"LD_LIBRARY_PATH": f"{MPI}/lib", "PYTHONPATH": f"{MPI}/lib/python3.11/site-packages"}
            program = ["--", *launcher, sys.executable, *program]
        words = [*STROBE, "run", "--quiet", "-o", str(trace), *program]
        subprocess.run(words, env=environment, capture_output=True, check=True)
    return trace


def is_right(case: dict, finding: dict) -> bool:
    """Whether a finding names the defect."""
    text = f"{finding['what']} {finding['do']}".lower()
    place = f"{case['defect_file']}:{case['line']}"
    named = case["function"].lower() in text or finding["where"].endswith(place)
    return named or any(word.lower() in text for word in case["words"])


def judged(case: dict, trace: Path, gain: float | None) -> Judged:
    """Return what is found about a program: the place of the right finding, its interval as a part of the step."""
    asked = subprocess.run([*STROBE, "summary", str(trace), "--json"], capture_output=True, text=True, check=True)
    summary, name = json.loads(asked.stdout), Path(case["file"]).stem
    findings = summary["findings"]
    promises = [each for each in findings if not each["informative"] and each["gain_high_ns"] > 0]
    if case["kind"] == "healthy":
        return Judged(name, healthy=True, promises=tuple(each["rule"] for each in promises))
    places = [at for at, each in enumerate(findings) if is_right(case, each)]
    if not places:
        return Judged(name, gain=gain)
    step_ns = summary["step"]["mean_ns" if case["gain_by"] == "mean" else "median_ns"] if summary["step"] else 0
    right = next((findings[at] for at in places if findings[at] in promises), None)
    interval = (right["gain_low_ns"] / step_ns, right["gain_high_ns"] / step_ns) if right and step_ns else None
    return Judged(name, False, places[0] + 1, (right or findings[places[0]])["rule"], interval, gain)


def main() -> int:
    """Judge the cases with these names, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of programs, without .py")
    parser.add_argument("--aside", action="store_true", help="only those that are set aside, instead of the others")
    parser.add_argument("--recordings", type=Path, default=Path("recordings"), help="folder of the recordings")
    parser.add_argument("--measured", type=Path, default=HERE / "measured.json", help="what measure.py has written")
    parser.add_argument("--keep", action="store_true", help="keep the counts by rule in figures.json")
    args = parser.parse_args()
    args.recordings.mkdir(exist_ok=True)
    gains = json.loads(args.measured.read_text(encoding="utf-8")) if args.measured.exists() else {}
    found = list[Judged]()
    for case in json.loads((HERE / "cases.json").read_text(encoding="utf-8")):
        name = Path(case["file"]).stem
        if name in args.names or (not args.names and ("set_aside" in case["file"]) == args.aside):
            gain = gains.get(name, {}).get("gain_share")
            found.append(judged(case, recording(case, args.recordings), gain))
    print("| program | place | promised, part of a step | measured |\n|---|---|---|---|")
    for each in found:
        place = "healthy" if each.healthy else each.place or "not named"
        promised = "; ".join(each.promises) or "none"
        if each.interval is not None:
            promised = f"{each.interval[0]:.0%} to {each.interval[1]:.0%} ({each.rule})"
        print(f"| {each.name} | {place} | {promised} | {'' if each.gain is None else f'{each.gain:.0%}'} |")
    print(f"\n{sentences(found)}")
    if args.keep:
        write(f"programs{', set aside' if args.aside else ''}", found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
