"""The exit codes of the command line, in one table: errors, help and reference are made from it.

`strobe run`, `strobe cc` and `strobe metrics` end as the program they started, except for the codes from 125 to 127.
"""

from __future__ import annotations

OK = 0
FINDINGS = 1
USAGE = 2
INCONCLUSIVE = 3
UNREADABLE = 4
FAILED = 5
INTERNAL = 6
NOT_RECORDED = 125
NOT_EXECUTABLE = 126
NOT_FOUND = 127
INTERRUPTED = 130
READER_LEFT = 141

# Meaning by code, for help and reference.
OF_READERS = {
    OK: "success, whatever was found",
    FINDINGS: "something was found, and --fail-on-findings was given; of check and bench: a regression",
    USAGE: "wrong usage: an unknown verb, option, column or run",
    INCONCLUSIVE: "the data allow no sound answer",
    UNREADABLE: "the input cannot be read",
    FAILED: "the answer cannot be delivered: disk full, no permission, lost worker, missing library",
    INTERNAL: "a bug in strobe, with its traceback",
    INTERRUPTED: "interrupted by Ctrl-C",
    READER_LEFT: "the reader of the output left, as in `strobe ... | head`",
}
OF_LAUNCHERS = {
    NOT_RECORDED: "recording could not start; the program was not run",
    NOT_EXECUTABLE: "the program cannot be executed",
    NOT_FOUND: "the program was not found",
}
SHORT = "Exit codes: 0 ok, 1 findings (if a gate is asked for), 2 usage, 3 inconclusive, 4 unreadable, 5 failed."
