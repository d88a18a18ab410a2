"""How often advice about GPUs is right: a folder of profiles with one known problem each.

./dev bench gpu_advice FOLDER [--aside] [NAME ...]

`cases.json` in the folder has a list of objects: `file` (or `files`, of ranks), `words` (a right finding has one of
them in its text), `gain_ns` and `step_ns` (measured on a repaired program), `healthy`, `set_aside`. Prints a line for
each case, and how often the first finding is right, or one of the first three, how often the promised interval holds
the gain, and how many healthy profiles are promised one.
"""

import argparse
import json
import tempfile
from pathlib import Path

import strobe
from strobe.advice.rank import findings
from strobe.api.imports import imported, opened
from tests.injector.figures import Judged, sentences, write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="only cases whose file has one of these in its name")
    parser.add_argument("--aside", action="store_true", help="those that are set aside, instead of the others")
    parser.add_argument("--keep", metavar="KIND", help="keep the counts by rule in figures.json, for this kind")
    options = parser.parse_args()
    judged = list[Judged]()
    for case in json.loads((options.folder / "cases.json").read_text()):
        named = not options.names or any(name in case["file"] for name in options.names)
        if not named or case["set_aside"] != options.aside:
            continue
        files = [options.folder / name for name in case.get("files") or [case["file"]]]
        found = findings(strobe.open(_job(files)))
        promises = [each for each in found if not each.informative and each.gain_high_ns > 0]
        if case["healthy"]:
            judged.append(Judged(case["file"], True, promises=tuple(each.rule for each in promises)))
            print(f"{case['file']}: healthy, {'; '.join(f'{e.rule} {e.what}' for e in promises) or 'no promise'}")
            continue
        right = [any(word in f"{each.what} {each.do} {each.where}".lower() for word in case["words"]) for each in found]
        place, step_ns = right.index(True) if any(right) else None, case["step_ns"]
        print(f"{case['file']}: {case['problem']}, place {'none' if place is None else place + 1}, gain "
              f"{case['gain_ns'] / 1e6:.3g} ms of {step_ns / 1e6:.4g}; " + "; ".join(
                  f"{e.rule} {e.gain_low_ns / 1e6:.3g}..{e.gain_high_ns / 1e6:.3g}" for e in found[:4]))  # fmt: skip
        if place is None:
            judged.append(Judged(case["file"]))
            continue
        best = found[place]
        interval = None if best.informative else (best.gain_low_ns / step_ns, best.gain_high_ns / step_ns)
        judged.append(Judged(case["file"], False, place + 1, best.rule, interval, case["gain_ns"] / step_ns))
    print(f"\n{sentences(judged)}")
    if options.keep:
        write(options.keep, judged)


def _job(files: list[Path]) -> Path:
    """Return the trace of one file, or of the ranks of a job."""
    if len(files) == 1:
        return opened(files[0], talk=False)
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            (Path(folder) / file.name).symlink_to(file.resolve())
        return imported([Path(folder)], Path(tempfile.mkdtemp()) / "job.strobe", talk=False)


if __name__ == "__main__":
    main()
