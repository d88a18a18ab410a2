"""What the command line does with a trace once its program is over: it completes it, and prints the summary."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from strobe.cli import installed, lean_imports
from strobe.errors import StrobeError
from strobe.model.option import yes_or_no
from strobe.model.terminal import talk
from strobe.record.options.all_options import unknown_variables
from strobe.record.options.recorder_options import Setting


def complete(folder: str, settings: Mapping[str, Setting]) -> None:
    """Complete the trace and print its summary. An error here is only a message: the exit code is the program's."""
    from pathlib import Path

    if not os.path.isdir(folder):
        talk(f"the trace '{folder}' was removed while the program ran")
        return
    if installed.missing_for_reading():
        if not yes_or_no(settings["quiet"].text):
            talk(f"recorded; where all of strobe is installed: strobe summary {folder}")
        return
    try:
        lean_imports.without_blas_threads()
        from strobe.trace.after_run.closing import close_trace

        close_trace(Path(folder))
        _check_clocks(folder)
        if yes_or_no(settings["quiet"].text):
            return
        from strobe.api.trace import open_trace
        from strobe.present.summary import write_summary
        from strobe.present.summary_text import summary_text
        from strobe.present.text_page import has_box_characters

        for name in unknown_variables(os.environ):
            talk(f"{name} in the environment is not an option of strobe")
        summary = write_summary(open_trace(folder))
        if yes_or_no(settings["json"].text):
            print(summary.to_json(), file=sys.stderr)
        elif settings["summary"].text == "short":
            sys.stderr.write(summary_text(summary, unicode=has_box_characters(sys.stderr)))
    except StrobeError as error:
        talk(str(error))
    except OSError as error:
        talk(f"the trace is not complete: {error.strerror or error} ({folder})")


def _check_clocks(folder: str) -> None:
    """Check the clocks of several nodes by their messages, and repair them."""
    from pathlib import Path

    from strobe.trace.archive import process_files, read_job

    settings = read_job(Path(folder)).settings
    adapters = settings.get("adapters")
    # With MPI one `strobe run` may have ranks on several nodes; else each rank has its own, and they share a job.
    several = settings.get("job") or (isinstance(adapters, list) and "mpi" in adapters)
    if not several or len(process_files(Path(folder))) < 2:
        return
    from strobe.api.trace import open_trace
    from strobe.ranks.clock_check import CHEAP_ROWS, repair, rows_to_check

    trace = open_trace(folder)
    if len(set(trace.clocks)) < 2:
        return
    if rows_to_check(trace) > CHEAP_ROWS:
        talk(f"clocks of several nodes were not checked (too many messages); to check: strobe clocks --repair {folder}")
        return
    repairs = repair(trace)
    if repairs is not None and repairs.points:
        open_trace(folder).pyramid.build()
