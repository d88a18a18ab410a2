"""HTML: the summary, the main tables and a flame graph of the call tree as one file that needs nothing else."""

from strobe import registry
from strobe.model.plugins import Format

FORMAT = Format(
    "html",
    "One HTML file to read offline: summary, tables, flame graph",
    (".html",),
    write=registry.later("strobe.formats.html.page:write"),
)
