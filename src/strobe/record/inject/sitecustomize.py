"""Starts the recorder in a Python that `strobe run` started. Any Python may come here: no new syntax.

This folder is first in PYTHONPATH for the length of the run only. The file takes itself off `sys.path`, starts the
recorder, and then runs the sitecustomize that it displaced, so that the program finds all as it would without strobe.
"""


def _start():  # type: ignore[no-untyped-def]
    import os
    import sys

    here = os.path.dirname(__file__)
    while here in sys.path:
        sys.path.remove(here)
    sys.path_importer_cache.pop(here, None)
    try:
        if sys.version_info < (3, 11):
            raise ImportError("strobe records Python 3.11 and later")
        if "t" in getattr(sys, "abiflags", ""):
            raise ImportError("strobe does not record free-threaded builds of Python")
        from strobe.record.program.bootstrap import start_from_environment
    except Exception as error:  # Python of another environment: the program runs unrecorded, with a note in the trace
        _note("%s (process %d) was not recorded: %s" % (sys.executable, os.getpid(), error))  # type: ignore[no-untyped-call]
    else:
        sentence = start_from_environment()
        if sentence:
            _note(sentence)  # type: ignore[no-untyped-call]
    del sys.modules["sitecustomize"]
    for finder in sys.meta_path:
        if hasattr(finder, "find_spec") and finder.find_spec("sitecustomize", None) is not None:
            # `site` is importing us by this name: it goes on with the module that it finds under it afterwards.
            import sitecustomize  # noqa: F401

            return
    # `site` passes over a missing sitecustomize; the program then finds none either.
    missing = ImportError("no sitecustomize")
    missing.name = "sitecustomize"
    raise missing


def _note(sentence):  # type: ignore[no-untyped-def]
    import os

    for line in os.environ.get("STROBE_SESSION", "").split("\n"):
        if line.startswith("folder="):
            try:
                with open(os.path.join(line[7:], "notes.txt"), "a") as notes:
                    notes.write(sentence + "\n")
            except (OSError, UnicodeError):
                return  # the trace is gone, or its disk is full


_start()  # type: ignore[no-untyped-call]
