"""What ncu prints without `--csv`: for each kernel its sections with tables of metrics: the page of details."""

from __future__ import annotations

import csv
import io
import re

_COLUMNS = (
    *("ID", "Process ID", "Process Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size"),
    *("Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value"),
)
_SIZE = r"\(\d+, \d+, \d+\)"
# Of versions before 2022 the sizes are metrics, and the time of the launch stands here.
_KERNEL = re.compile(
    rf"\s*(?P<name>\S.*?)(?: (?P<grid>{_SIZE})x(?P<block>{_SIZE}))?(?:, \d{{4}}-\w{{3}}-\d\d [\d:]+)?"
    r", Context (?P<context>\d+), Stream (?P<stream>\d+)(?:, Device (?P<device>\d+), CC (?P<cc>[\d.]+))?\s*"
)
_IN_BYTES = re.compile(rb"(?m)^[^\n]{1,8192}, Context \d+, Stream \d+[^\n]*\n(?:\s*\n)?\s*Section: ")
_PROGRAM = re.compile(r"\s*\[(\d+)\] (\S.*)@\S+\s*")
_SECTION = re.compile(r"\s*Section: (.+?)\s*")
_RULE = re.compile(r"\s*(-{3,}) (-{3,}) (-{3,})\s*")


def is_printed(head: bytes) -> bool:
    """Return whether a kernel with its first section is in these bytes."""
    return _IN_BYTES.search(head) is not None


def as_csv(text: str) -> str:
    """Return the same as `ncu --csv --page details` writes it; a kernel has a line without a metric, too."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(_COLUMNS)
    process, program, section, number = "", "", "", -1
    kernel: list[str] = []
    in_table, spans = False, [(0, 0)] * 3
    for line in text.splitlines():
        if found := _RULE.fullmatch(line):
            in_table = True  # until an empty line: older versions have no headings between two rules
            spans = [found.span(group) for group in (1, 2, 3)]
        elif not line.strip():
            in_table = False
        elif ", Context " in line and (found := _KERNEL.fullmatch(line)):
            number, in_table = number + 1, False
            of = {name: cell or "" for name, cell in found.groupdict().items()}
            kernel = [str(number), process, program, of["name"], of["context"], of["stream"]]
            kernel += [of["block"], of["grid"], of["device"], of["cc"]]
            writer.writerow([*kernel, "", "", "", ""])
        elif found := _PROGRAM.fullmatch(line):
            process, program = found.groups()
        elif found := _SECTION.fullmatch(line):
            section, in_table = found[1], False
        elif kernel and in_table:
            name, unit = (line[begin:end].strip() for begin, end in spans[:2])
            if name != "Metric Name":
                writer.writerow([*kernel, section, name, unit, line[spans[1][1] :].strip()])
    return out.getvalue()
