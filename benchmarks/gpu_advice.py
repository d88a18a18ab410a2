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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="only cases whose file has one of these in its name")
    parser.add_argument("--aside", action="store_true", help="those that are set aside, instead of the others")
    options = parser.parse_args()
    places, held, promised, false, healthy = list[int](), 0, 0, 0, 0
    for case in json.loads((options.folder / "cases.json").read_text()):
        named = not options.names or any(name in case["file"] for name in options.names)
        if not named or case["set_aside"] != options.aside:
            continue
        files = [options.folder / name for name in case.get("files") or [case["file"]]]
        found = findings(strobe.open(_job(files)))
        promises = [each for each in found if not each.informative and each.gain_high_ns > 0]
        if case["healthy"]:
            healthy, false = healthy + 1, false + bool(promises)
            print(f"{case['file']}: healthy, {'; '.join(f'{e.rule} {e.what}' for e in promises) or 'no promise'}")
            continue
        right = [any(word in f"{each.what} {each.do} {each.where}".lower() for word in case["words"]) for each in found]
        places.append(right.index(True) + 1 if any(right) else 99)
        print(f"{case['file']}: {case['problem']}, place {places[-1]}, gain {case['gain_ns'] / 1e6:.3g} ms of "
              f"{case['step_ns'] / 1e6:.4g}; " + "; ".join(
                  f"{e.rule} {e.gain_low_ns / 1e6:.3g}..{e.gain_high_ns / 1e6:.3g}" for e in found[:4]))  # fmt: skip
        best = found[places[-1] - 1] if any(right) else None
        if best is not None and not best.informative:
            promised += 1
            held += best.gain_low_ns <= case["gain_ns"] <= best.gain_high_ns
    first, three = sum(place == 1 for place in places), sum(place <= 3 for place in places)
    print(f"\nOf {len(places)} problems {first} are named first and {three} among three.")
    print(f"Of {promised} promised gains {held} lie in the interval.")
    print(f"Of {healthy} healthy profiles {false} are promised one.")


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
