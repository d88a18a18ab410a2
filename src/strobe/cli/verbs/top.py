"""`strobe top [RUN]`: a run as it is now, in the terminal, until it ends."""

from __future__ import annotations

import shutil
import sys
import time

from strobe.cli.options import add_options, reading, write
from strobe.model.option import Option
from strobe.model.terminal import clear_screen
from strobe.model.verb import Verb

_DESCRIPTION = """\
Show a run while it is being recorded: the step of the last seconds, the verdict, ranks, GPUs. Ends when the run ends.
Not on a terminal, it prints what is known now, once.
"""
_OPTIONS = (
    Option("every", "Time between two looks.", float, 1.0, unit="s", metavar="TIME"),
    Option("recent", "Steps count as recent for so long.", float, 10.0, unit="s", metavar="TIME"),
    Option("once", "Print what is known now, and end.", bool, False),
    Option("json", "Print one line of JSON for each look.", bool, False),
    Option("openmetrics", "Print what a Prometheus server reads, once.", bool, False),
)
_MOST_CPU = 0.05  # of a core: the looks at a long run are rarer than asked for


def run(words: list[str]) -> int:
    """Parse the command line; look at the run, and look again until it ends."""
    parser = reading("top", _DESCRIPTION)
    add_options(parser, _OPTIONS)
    arguments = parser.parse_args(words)
    from strobe.api.trace import open_trace
    from strobe.present.live import openmetrics, status, status_text
    from strobe.present.text_page import has_box_characters

    terminal = sys.stdout.isatty() and not arguments.json
    once = arguments.once or arguments.openmetrics or not (terminal or arguments.json)
    folder, watched = None, False
    try:
        while True:
            begun, used = time.monotonic(), time.process_time()
            trace = open_trace(folder or arguments.trace)
            folder = trace.path
            now = status(trace, round(arguments.recent * 1e9))
            if arguments.openmetrics:
                text = openmetrics(now)
            elif arguments.json:
                text = now.to_json() + "\n"
            else:
                unicode = has_box_characters(sys.stdout)
                columns, lines = shutil.get_terminal_size()
                shown = list(status_text(now, unicode=unicode))
                shown = [line[:columns] for line in shown[: lines - 1]] if terminal and not once else shown
                text = "\n".join([*shown, ""])
            if terminal and not once and (now.running or watched):
                clear_screen(sys.stdout)
                watched = True
            write(text, None)
            sys.stdout.flush()
            if once or not now.running:
                return 0
            del trace
            rest = (time.process_time() - used) / _MOST_CPU
            time.sleep(max(0.0, max(arguments.every, rest) - (time.monotonic() - begun)))
    except KeyboardInterrupt:
        return 0


VERB = Verb("top", "Show a run while it is being recorded: steps, verdict, ranks, GPUs", run)
