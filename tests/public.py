"""The public traces (`tests/traces.toml`): where `./dev traces` puts them, and what a test without them reports."""

import csv
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build/traces"
MISSING = "the public traces are missing: run ./dev traces"
BYTES = {
    name: size
    for origin in tomllib.loads((ROOT / "tests/traces.toml").read_text(encoding="utf-8"))["origin"]
    for _, size, name in origin["files"]
}
KINETO = tuple(name for name in BYTES if name.startswith("kineto/"))

needs_public_traces = pytest.mark.usefixtures("public_folder")


def are_here() -> bool:
    """Whether every file of the manifest is in the folder."""
    return all((FOLDER / name).is_file() and (FOLDER / name).stat().st_size == size for name, size in BYTES.items())


def exact_sums(name: str) -> dict[str, str]:
    """The sums of one trace of PyTorch, as exact arithmetic over its JSON has them."""
    with (FOLDER / "expected.csv").open() as stream:
        (row,) = (row for row in csv.DictReader(stream) if row["file"] == name)
    return row
