"""./dev traces [PLACE]: puts the public traces that tests compare answers with into build/traces.

PLACE is a folder or an http(s) address that has the files of tests/traces.toml. Without it, the environment variable
STROBE_TRACES is used, and without that the folder ../shared/traces. Every file is checked by its SHA-256.
"""

import argparse
import hashlib
import os
import sys
import tomllib
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MANIFEST = ROOT / "tests/traces.toml"
TARGET = ROOT / "build/traces"
USUAL = "../shared/traces"


def is_sound(path: Path, sha256: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def read(place: str, name: str) -> bytes:
    if place.startswith(("http://", "https://")):
        with urllib.request.urlopen(f"{place.rstrip('/')}/{urllib.parse.quote(name)}", timeout=60) as answer:
            return bytes(answer.read())
    return (Path(place) / name).read_bytes()


def manifest() -> Iterator[tuple[str, str]]:
    """The name and the SHA-256 of every file."""
    for origin in tomllib.loads(MANIFEST.read_text(encoding="utf-8"))["origin"]:
        for sha256, _, name in origin["files"]:
            yield name, sha256


def copy(place: str, name: str, sha256: str) -> str:
    """Copy one file; returns what is wrong with it, or an empty text."""
    try:
        content = read(place, name)
    except (OSError, urllib.error.URLError) as error:
        return f"cannot be read ({error})"
    if hashlib.sha256(content).hexdigest() != sha256:
        return "has another SHA-256 than tests/traces.toml"
    path = TARGET / name
    path.parent.mkdir(parents=True, exist_ok=True)
    started = path.with_name(f"{path.name}.part")
    started.write_bytes(content)
    started.replace(path)
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev traces", description=__doc__.partition("\n")[0])
    parser.add_argument("place", nargs="?", help=f"a folder or an http(s) address (default: $STROBE_TRACES, {USUAL})")
    options = parser.parse_args()
    place = options.place or os.environ.get("STROBE_TRACES") or str(ROOT / USUAL)
    files = dict(manifest())
    missing = [name for name, sha256 in files.items() if not is_sound(TARGET / name, sha256)]
    for name in missing:
        problem = copy(place, name, files[name])
        if problem:
            sys.exit(
                f"./dev traces: {name} in {place} {problem}. "
                "Give a folder or an address that has the files of tests/traces.toml: ./dev traces PLACE"
            )
    print(f"{len(files)} public traces and results are in {TARGET.relative_to(ROOT)} ({len(missing)} of them new)")


if __name__ == "__main__":
    main()
