"""First code of the recorder in a measured process: reads the session from the environment and starts recording.

Never raises into the program: an error is one sentence on stderr, and the trace is without this process.
"""

from __future__ import annotations

import errno
import os

from strobe.record.options.session_settings import SESSION_VARIABLE, Session, disabled

# The trace folder is gone, full or read-only: all processes of the program meet that, and only the main one reports it.
# Or it belongs to another user: the process that started this one has noted that.
_OF_THE_FOLDER = (errno.ENOENT, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM)


def start_from_environment() -> str:
    """Record this process until it ends, if the environment asks for it. Returns a note for the trace, or ""."""
    text = os.environ.get(SESSION_VARIABLE, "")
    if not text or disabled():
        return ""
    main = False
    try:
        from strobe.native import core
        from strobe.record.program import session, windows

        settings = Session.from_text(text)
        main = os.getppid() == settings.supervisor
        windows.begin(settings, main)
        if main:
            core.die_with_parent()  # whoever kills strobe means the program
        session.stop_at_exit()
        windows.end_at_exit()
        session.rest_while_forking()
    except Exception as error:
        if "subinterpreters" in str(error):  # one with a GIL of its own: the core cannot be imported there
            from strobe.record.program import interpreters

            return interpreters.start()
        if isinstance(error, OSError) and error.errno == errno.EBUSY:  # one that shares its GIL, or within a C program
            return f"an interpreter of process {os.getpid()} was not recorded: the process is recorded already"
        if not main and isinstance(error, OSError) and error.errno in _OF_THE_FOLDER:
            return ""  # its stderr may be data of the program
        from strobe.model.terminal import talk

        talk(f"this program runs unrecorded: {error}")
    return ""
