"""The options of recording on the command line: made from their table, record/options/recorder_options.py."""

from __future__ import annotations

import argparse

from strobe.cli.options import add_option
from strobe.record.options.all_options import OPTIONS
from strobe.record.options.recorder_options import GROUPS


def add_recording_options(parser: argparse.ArgumentParser) -> None:
    """Add every option of the table to a parser, by group. Its text is read later: other places may give it, too."""
    for group, title in GROUPS.items():
        target = parser.add_argument_group(title)
        for option in OPTIONS.values():
            if option.group == group:
                add_option(target, option, unread=True)


def given(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the text of the options that stood on the command line, by name."""
    texts: dict[str, str] = {}
    values = vars(arguments)
    for name, option in OPTIONS.items():
        value = values[option.keyword]
        if isinstance(value, list):
            value = option.many.join(value)
        elif isinstance(value, bool):
            value = "yes" if value else "no"
        if value is not None:
            texts[name] = value
    return texts
