"""The options of recording on the command line: made from their table, record/options.py."""

from __future__ import annotations

import argparse

from strobe.record.options import GROUPS, OPTIONS, Option, yes_or_no


def add_recording_options(parser: argparse.ArgumentParser) -> None:
    """Add every option of the table to a parser, by group. What is not given is None: other places may say it."""
    for group, title in GROUPS.items():
        options = [option for option in OPTIONS.values() if option.group == group]
        target = parser.add_argument_group(title) if options else parser
        for option in options:
            _add(target, option)


def given(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the text of the options that stood on the command line, by name."""
    texts = {}
    for name, option in OPTIONS.items():
        value = getattr(arguments, option.keyword)
        if isinstance(value, list):
            value = option.many.join(value)
        elif isinstance(value, bool):
            value = "yes" if value else "no"
        if value is not None:
            texts[name] = value
    return texts


def _add(target: argparse._ActionsContainer, option: Option) -> None:
    flags = (*option.flags, f"--{option.name}")
    # argparse formats help with %, so a percent sign of ours must be doubled.
    text = option.help.replace("%", "%%")
    if option.parse is yes_or_no:
        target.add_argument(*flags, dest=option.keyword, action="store_true", default=None, help=text)
        no = f"--no-{option.name}"
        target.add_argument(no, dest=option.keyword, action="store_false", default=None, help=argparse.SUPPRESS)
        return
    if option.default:
        text += f" ({option.default.replace('%', '%%')})"
    action = "append" if option.many else "store"
    target.add_argument(*flags, dest=option.keyword, action=action, metavar=option.metavar, help=text)
