"""Files and folders that appear under their own name when they are complete, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from strobe.errors import UsageError
from strobe.model.private_files import folder_mode


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Give a name to write to: the file appears under its own name when it is complete, or not at all.

    It is for its user only (strobe.model.private_files); one that was there keeps its mode.
    A pipe or a device (`/dev/stdout`) gets the bytes of the complete file, and stays what it is.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder, path.name)
            with open(Path(folder, path.name), "rb") as source, open(path, "wb") as target:
                shutil.copyfileobj(source, target)
        return
    work = path.with_name(f".{path.name}.writing-{os.getpid()}")
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & folder_mode()
    try:
        os.close(os.open(work, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode))
        yield work
        work.replace(path)
    finally:
        work.unlink(missing_ok=True)


def only_files(suffix: str) -> tuple[Callable[[Path], bool], str]:
    """Return the last two arguments of `new_folder` for a folder of files of one kind."""
    what = f"it is not a folder of {suffix} files"
    return lambda folder: all(each.name.endswith(suffix) for each in folder.iterdir()), what


@contextmanager
def new_folder(path: Path, is_ours: Callable[[Path], bool], else_why: str) -> Iterator[Path]:
    """Give a folder to write to, which appears when it is complete. One of an earlier export is replaced: `is_ours`.

    Raises UsageError if something else has this name; `else_why` is the reason in words.
    """
    if path.exists() and not (path.is_dir() and is_ours(path)):
        raise UsageError(f"'{path}' exists already: {else_why}", do="Choose another one: -o")
    work = path.with_name(f".{path.name}.writing-{os.getpid()}")
    try:
        work.mkdir(folder_mode(), parents=True)
        yield work
        shutil.rmtree(path, ignore_errors=True)
        work.rename(path)
    finally:
        shutil.rmtree(work, ignore_errors=True)
