"""HTML: a report of the run as one file that needs nothing else, made of the sections that are chosen."""

from strobe import registry
from strobe.model.option import Option
from strobe.model.plugins import Format

# In the order of the page.
SECTIONS = ("verdict", "step", "findings", "ranks", "notes", "cards", "flame", "tables", "quality")


def words(text: str) -> tuple[str, ...]:
    """Return the words between commas."""
    return tuple(word.strip() for word in text.split(","))


FORMAT = Format(
    "html",
    "One HTML file to read offline: verdict, step, findings, ranks, notes, tables, flame graph",
    (".html",),
    write=registry.later("strobe.formats.html.page:write"),
    options=(
        Option("sections", f"html: Only these sections: {', '.join(SECTIONS)}.", parse=words, metavar="NAME,..."),
    ),
)
