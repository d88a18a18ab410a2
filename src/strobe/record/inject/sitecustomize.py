"""Starts the recorder in a Python that `strobe run` (or a child of it) started.

This folder is first in PYTHONPATH for the length of the run only. The file takes itself off `sys.path`, starts the
recorder, and
then runs the sitecustomize that it displaced, so that the program finds everything as it would without strobe.
"""


def _start() -> None:
    import os
    import sys

    here = os.path.dirname(__file__)
    while here in sys.path:
        sys.path.remove(here)
    sys.path_importer_cache.pop(here, None)
    try:
        from strobe.record.bootstrap import start_from_environment
    except Exception as error:  # another environment's Python: the program runs, unrecorded, and the trace says so
        folder = next(
            (line[7:] for line in os.environ.get("STROBE_SESSION", "").split("\n") if line.startswith("folder=")), ""
        )
        try:
            with open(os.path.join(folder, "notes.txt"), "a", encoding="utf-8") as notes:
                notes.write(
                    f"{sys.executable} (process {os.getpid()}) was not recorded: {type(error).__name__}: {error}\n"
                )
        except OSError:
            pass
    else:
        start_from_environment()
    del sys.modules["sitecustomize"]
    for finder in sys.meta_path:
        if hasattr(finder, "find_spec") and finder.find_spec("sitecustomize", None) is not None:
            # `site` is importing us by this name: it goes on with the module that it finds under it afterwards.
            import sitecustomize  # noqa: F401

            return
    # `site` passes over a missing sitecustomize; the program then finds none either.
    raise ImportError(name="sitecustomize")


_start()
