"""Writes docs/reference/, the page's types and native tables from the code: `./dev gen`, or `./dev gen --check`."""

import argparse
import contextlib
import inspect
import io
import json
import os
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cached_property
from importlib import import_module
from pathlib import Path

import native_tables
import web_types

import strobe
from strobe import registry
from strobe.agents.serve import TOOLS
from strobe.answers.sql import VIEWS
from strobe.api.analyses import Analyses
from strobe.api.methods import condition_text, declaration
from strobe.api.trace import Trace
from strobe.cli.main import main as cli
from strobe.cli.main import spelled
from strobe.model import exit_codes
from strobe.model.kinds import GROUPS, PARADIGMS, RECORDED_WITH, ROLES
from strobe.model.losses import LOSSES, REMARKS
from strobe.model.option import Option
from strobe.model.plugins import Analysis, Format, Rule
from strobe.model.schema import SCHEMA_VERSION, TABLES, Column
from strobe.model.verb import Verb
from strobe.record.options.all_options import OPTIONS, PRESET_OPTIONS, adapters_of
from strobe.record.options.recorder_options import GROUPS as RECORDING_GROUPS
from strobe.server.routing.routes import ROUTES
from strobe.trace.archive import Job

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs/reference"
NOTE = "<!-- Written by ./dev gen from the code: do not edit. -->\n"


WIDTH = 110


def paragraph(text: str, indent: str = "") -> list[str]:
    """A text as lines of at most WIDTH characters; code and the text of a link stay on one line."""
    protected = re.sub(r"`[^`]*`", lambda code: code[0].replace(" ", "\0"), text)
    lines = textwrap.wrap(protected, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


def entry(name: str, properties: Iterable[str], meaning: str) -> list[str]:
    """One item of a list: a name as code, its properties in brackets where they are not empty, its meaning."""
    known = ", ".join(filter(None, properties))
    return paragraph(f"- `{name}`{f' ({known})' if known else ''}: {meaning}", "  ")


def column_entry(column: Column, condition: str = "") -> list[str]:
    """A column of a table: its type, its unit, the options with which it exists, and its meaning."""
    properties = (column.type, column.unit, f"with {code(condition)}" if condition else "")
    return entry(column.name, properties, column.meaning)


def help_of(*verb: str) -> str:
    """What `strobe VERB --help` prints, on a terminal of 100 columns."""
    os.environ.update(COLUMNS="100", NO_COLOR="1")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        cli([*verb, "--help"])
    return "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())


def command_line() -> str:
    """Every verb with its options, and the exit codes."""
    parts = ["# The command line\n", f"```\n{help_of()}\n```\n", "## Exit codes\n"]
    codes = ["| code | meaning |", "|---|---|"]
    codes += [f"| {code} | {meaning} |" for code, meaning in exit_codes.OF_READERS.items()]
    parts.append("\n".join([*codes, ""]))
    parts.append(
        "`strobe run`, `strobe cc` and `strobe metrics` end as the program they started, or with these codes:\n"
    )
    parts.append(
        "\n".join([*codes[:2], *(f"| {code} | {text} |" for code, text in exit_codes.OF_LAUNCHERS.items()), ""])
    )
    for name in registry.names("cli.verbs"):
        verb = registry.load("cli.verbs", name)
        assert isinstance(verb, Verb)
        parts.append(f"## strobe {verb.name}\n\n```\n{help_of(verb.name)}\n```\n")
    return "\n".join(parts)


def analyses() -> str:
    """Every analysis: the question it answers, how, what must have been recorded, its options, columns and errors."""
    parts = [
        "# Analyses",
        "",
        "Each is a verb, a method of a trace and an address of the view's server.",
        "",
    ]
    for name in registry.names("analyses"):
        analysis = registry.load("analyses", name)
        assert isinstance(analysis, Analysis)
        recorded = (RECORDED_WITH[need] for need in analysis.needs)
        needs = ", ".join(f"{what} (`{option}`)" if option else what for what, option in recorded)
        parts += [f"## {spelled(analysis.name)}", "", analysis.question, ""]
        parts += [f"`strobe {spelled(analysis.name)} TRACE`, `trace.{analysis.name}(...)`", ""]
        parts += [f"Needs: {needs}.", ""] if needs else []
        parts += [analysis.details.partition("\n\n")[2].strip(), ""]
        if analysis.options:
            parts += ["Options:", ""]
            for option in analysis.options:
                parts += entry(option.flag, (allowed(option), default(option)), option.help)
            parts.append("")
        parts += ["Columns:", ""]
        for column in analysis.columns:
            parts += column_entry(column, condition_text(column))
        parts.append("")
        if analysis.raises:
            parts += [*paragraph(f"UsageError: where {'; or where '.join(analysis.raises)}."), ""]
    return "\n".join(parts)


def analysis_methods() -> str:
    """Every analysis as a method, for type checkers and editors; what Trace has under the same name comes first."""
    methods = []
    for name in analyses_of_a_trace():
        analysis = registry.load("analyses", name)
        assert isinstance(analysis, Analysis)
        methods.append(declaration(analysis))
    return "\n".join(
        [
            "# Written by ./dev gen from src/strobe/analyses: do not edit.",
            "from typing import Literal",
            "",
            "from strobe.tables.table import Table",
            "",
            "class Analyses:",
            f'    """{Analyses.__doc__}"""',
            "",
            *methods,
        ]
    )


def python() -> str:
    """Every public name of `import strobe`, with types; of a trace what returns a table, and its analyses."""
    parts = [
        "# Python",
        "",
        *paragraph(
            "`import strobe` gives these names, and imports nothing until one is used. Types are in the package"
            " (`py.typed`). Times are integers in ns, sizes integers in bytes; names of columns end with their unit."
            " Every error that is raised on purpose is a `strobe.StrobeError` ([errors explained](errors.md))."
        ),
        "",
    ]
    for name, (module, attribute) in sorted(strobe._HOME.items()):
        value = getattr(import_module(module), attribute)
        parts += member(f"strobe.{name}", value, "##")
        if isinstance(value, type):
            for each, function in members(value):
                parts += member(f"{name}.{each}", function, "###")
        if value is Trace:
            links = ", ".join(f"[{each}](analyses.md#{spelled(each)})" for each in analyses_of_a_trace())
            parts += ["### Analyses", "", *paragraph(f"Each is a method that returns a `Table`: {links}."), ""]
    return "\n".join(parts)


def analyses_of_a_trace() -> list[str]:
    """The analyses that are methods of Trace: all but those whose name it has itself."""
    own = {name for each in Trace.__mro__ if each is not Analyses for name in vars(each)}
    return [name for name in registry.names("analyses") if name not in own]


def members(of: type) -> list[tuple[str, object]]:
    """Public methods and properties of a class of the API; of what Trace inherits those that return a table."""
    found = []
    for base in of.__mro__[:-1]:
        for name, value in vars(base).items():
            function = value.fget if isinstance(value, property) else getattr(value, "func", value)
            if name.startswith("_") or name != getattr(function, "__name__", ""):
                continue
            if base.__module__.startswith("strobe.trace.") and function.__annotations__.get("return") != "Table":
                continue
            if inspect.isfunction(function) and base is not Analyses:
                found.append((name, value))
    return found


def member(name: str, value: object, level: str) -> list[str]:
    """A public name: its signature, its type if it is a property, and its documentation."""
    shown = f"{name}: {value.fget.__annotations__['return']}" if isinstance(value, property) else name
    if isinstance(value, cached_property):
        shown = f"{name}: {value.func.__annotations__['return']}"
    elif callable(value) and value.__name__.islower():  # classes with such names are used like functions
        shown = name + signature(value)
    return [f"{level} {name}", "", f"```text\n{shown}\n```", "", inspect.getdoc(value) or "", ""]


class Source(str):
    """An annotation as it is in the source, without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def signature(of: Callable[..., object]) -> str:
    """The parameters of a function, without `self`, and what it returns."""
    found = inspect.signature(of)
    kept = [each for each in found.parameters.values() if each.name != "self"]
    plain = [each.replace(annotation=written(each.annotation)) for each in kept]
    text = str(found.replace(parameters=plain, return_annotation=written(found.return_annotation)))
    if len(text) < 80:
        return text
    inside, _, result = text[1:].rpartition(") -> ")
    return "(\n    " + re.sub(r", (?=\*|\w+:)", ",\n    ", inside) + f"\n) -> {result}"


def written(annotation: object) -> object:
    """An annotation that is a text, to be shown as it is."""
    return Source(annotation) if isinstance(annotation, str) else annotation


def rules() -> str:
    """Every rule of the advice."""
    figures = json.loads((ROOT / "tests/injector/figures.json").read_text(encoding="utf-8"))
    parts = [
        "# Rules",
        "",
        "The problems that `strobe summary` recognises. How often a rule is right was counted on programs and profiles",
        "with one known problem each, and on healthy ones (`tests/injector`), also on a third of them that was set",
        "aside until the rules were done. *first*: the problem is the first finding, of those that the rule names.",
        "*gain held*: the interval holds the gain that the repair brought, of those that were promised one. *healthy*:",
        "healthy programs that were promised a gain. Rules without figures name causes that none of the cases has.",
        "A gain may be longer than the time that the finding names: without the recorder a step is shorter, and what",
        "is left of it gets faster, too ([decision 0021](../decisions/0021-advice.md)).",
        "",
        "| rule | problem | first | gain held | healthy |",
        "|---|---|---|---|---|",
    ]
    for name in registry.names("advice"):
        rule = registry.load("advice", name)
        assert isinstance(rule, Rule)
        counts = sum((Counter(by_rule.get(rule.id, {})) for by_rule in figures.values()), Counter())
        first = f"{counts['first']} of {counts['right']}" if counts["right"] else ""
        held = f"{counts['held']} of {counts['gains']}" if counts["gains"] else ""
        parts.append(f"| `{rule.id}` | {rule.title} | {first} | {held} | {counts['healthy'] or ''} |")
    return "\n".join([*parts, ""])


def formats() -> str:
    """Every kind of file of another tool."""
    parts = [
        "# Formats",
        "",
        "Files of other tools that strobe reads and writes.",
        "",
    ]
    for name in registry.names("formats"):
        form = registry.load("formats", name)
        assert isinstance(form, Format)
        uses = " and ".join(use for use, there in (("read", form.read), ("written", form.write)) if there)
        parts += entry(form.name, (uses, listed(form.suffixes)), form.title)
    return "\n".join([*parts, ""])


def adapters() -> str:
    """Every source of events, as the first line of its file describes it."""
    parts = [
        "# Adapters",
        "",
        "Sources of events for `strobe run --trace`.",
        "",
    ]
    for name in registry.names("record.adapters"):
        parts += entry(name, (), first_line(import_module(f"strobe.record.adapters.{name}").__doc__ or ""))
    return "\n".join([*parts, ""])


def options() -> str:
    """Every option of recording, with the names that it has in each place."""
    parts = [
        "# Options of recording",
        "",
        "`--name` of `strobe run`, `STROBE_NAME` in the environment, a key in a file and a keyword of",
        "`strobe.record()` are the same option. The order of precedence is: command line (or keyword),",
        "environment, project, user, preset, default. The project's file is the nearest `strobe.toml`, or",
        "`pyproject.toml` with a table `[tool.strobe]`, in the working directory or above; the user's is",
        "`~/.config/strobe.toml` (or in `$XDG_CONFIG_HOME`). `strobe config` prints each value and its origin;",
        "`job.json` of a trace keeps both.",
        "",
    ]
    for group, title in RECORDING_GROUPS.items():
        rows = [option for option in OPTIONS.values() if option.group == group]
        if rows:
            parts += [f"## {title[0].upper()}{title[1:]}", ""]
            for each in rows:
                parts += entry(f"--{each.name}", (code(each.variable), default(each)), each.help)
            parts.append("")
    parts += ["## Presets", ""]
    for name, options in PRESET_OPTIONS.items():
        values = {"trace": ",".join(adapters_of(name)), **options}
        parts += [f"- `{name}`"]
        for key, text in values.items():
            parts += paragraph(f"  - `{key}` = {', '.join(f'`{each}`' for each in text.split(','))}", "    ")
    return "\n".join([*parts, ""])


def quality() -> str:
    """Every counter of the quality table that has a meaning in words."""
    parts = [
        "# Quality",
        "",
        "Counters of the table `quality`, by process. A counter without a row is 0.",
        "",
        "Data are missing from the trace, or wrong; `strobe info`, the summary and the overview report these:",
    ]
    for words, title in ((LOSSES, ""), (REMARKS, "Good to know; nothing is missing:")):
        parts += [*(["", title] if title else []), ""]
        for what, meaning in words.items():
            parts += entry(what, (), meaning)
    return "\n".join([*parts, ""])


def views() -> str:
    """Every page of the view, as the comment at the top of its file describes it."""
    parts = ["# Views", "", "The pages of `strobe view`.", ""]
    for path in sorted((ROOT / "web/src/views").glob("*.tsx")):
        parts += entry(path.stem, (), first_line(path.read_text(encoding="utf-8").lstrip("/ ")))
    return "\n".join([*parts, ""])


def server() -> str:
    """Every question that the view's server answers, with its parameters and bounds."""
    parts = [
        "# The server",
        "",
        "Requests to `strobe view`: `GET api/NAME?parameters`, relative to the address that it prints.",
        "`api/openapi.json` describes the same for programs, with the bounds of the shown trace. Every answer has a",
        "largest size. A parameter that is unknown, given twice, or out of bounds is refused, with",
        'status 400 and a sentence: `{"error": ..., "do": ...}`.',
        "",
        "In addition, `api/table/NAME` answers the [analysis](analyses.md) of that name: its options are parameters,",
        "and `as=csv` or `as=json` gives a file with all rows.",
        "",
    ]
    for _, endpoint in sorted(ROUTES.items()):
        bound = f"At most {size(endpoint.most_bytes)}: {', '.join(f'`{media}`' for media in endpoint.media)}."
        parts += [f"## {endpoint.name}", "", *paragraph(endpoint.question), "", bound, ""]
        if endpoint.parameters:
            for each in endpoint.parameters:
                parts += entry(each.name, (bounds(each), default(each)), each.help)
            parts.append("")
    return "\n".join(parts)


def mcp() -> str:
    """Every tool that agents have, with its parameters and bounds."""
    parts = [
        "# Tools for agents",
        "",
        "What `strobe mcp` serves ([guide](../how-to/agents.md)).",
        "A parameter that is unknown or out of bounds is refused, with a sentence.",
        "",
    ]
    for tool in TOOLS.values():
        parts += [f"## {tool.name}", "", *paragraph(tool.description), ""]
        for each in tool.parameters:
            parts += entry(each.name, (bounds(each), default(each)), each.help)
        parts += [""] if tool.parameters else []
    return "\n".join(parts)


_DOCUMENTS = (
    ("Docs", "docs"),
    ("Tutorials", "docs/tutorials"),
    ("Guides", "docs/how-to"),
    ("Coming from", "docs/coming-from"),
    ("Reference", "docs/reference"),
)


def llms() -> str:
    """The index of the documents for language models (llmstxt.org): each with its title and first sentence."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    parts = [f"# strobe\n\n> {first_sentence(readme)}\n"]
    for title, folder in _DOCUMENTS:
        parts.append(f"## {title}\n")
        for path in sorted((ROOT / folder).glob("*.md")):
            text = path.read_text(encoding="utf-8")
            heading = next(line for line in text.splitlines() if line.startswith("# ")).removeprefix("# ")
            parts.append(f"- [{heading}]({path.relative_to(ROOT).as_posix()}): {first_sentence(text)}")
        parts.append("")
    return "\n".join(parts)


def first_sentence(document: str) -> str:
    """The first sentence of a document below its title, without links; its title where it has tables only."""
    document = re.sub(r"^```.*?^```", "", document, flags=re.DOTALL | re.MULTILINE)
    paragraphs = (" ".join(each.split()) for each in document.partition("# ")[2].split("\n\n")[1:])
    title = document.partition("# ")[2].partition("\n")[0]
    text = next((each for each in paragraphs if each[:1].isalpha() or re.match("`[^`]", each)), title)
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", re.split(r"(?<=\.)\s", text)[0].rstrip(".:")) + "."


def size(count: int) -> str:
    """A number of bytes in MB of 2^20."""
    return f"{count / 2**20:.1f}".removesuffix(".0") + " MB"


def bounds(parameter: Option) -> str:
    """What a parameter may be, in words."""
    if parameter.kind == "choice":
        return ", ".join(f"`{choice}`" for choice in parameter.choices)
    if parameter.kind == "text":
        return f"up to {parameter.most} characters"
    one = f"a {parameter.of.replace('_', ' ')}" if parameter.of else f"{parameter.least} to {parameter.most}"
    return f"up to {parameter.items} numbers with commas, each {one}" if parameter.items else one


def default(parameter: Option) -> str:
    """The default of an option or parameter, in words; empty where it has none."""
    if parameter.required:
        return "required"
    return f"default {code(parameter.default_text)}" if parameter.default_text else ""


def allowed(option: Option) -> str:
    """What the values of an option of an analysis are; empty for a text."""
    if option.choices:
        return listed(option.choices)
    return {"whole": "a whole number", "real": "a number", "flag": "", "duration": "a duration"}.get(option.kind, "")


def code(text: str) -> str:
    """A text as Markdown shows code; nothing for an empty one."""
    return f"`{text}`" if text else ""


def first_line(text: str) -> str:
    """The first line of a text, without the full stop."""
    return text.strip().partition("\n")[0].rstrip(".")


def tables() -> str:
    """Every table of a trace, as SQL sees it."""
    nothing = Trace(Path("nothing.strobe"), Job(zero_ns=0), [])

    def in_sql(name: str) -> list[str]:
        return nothing.sql(f"select * from {name}").columns

    parts = [
        "# Tables",
        "",
        *paragraph(
            f'Schema version {SCHEMA_VERSION}. `strobe sql TRACE "select ..."` and `trace.sql(...)` query these tables.'
            " Times are relative to the zero of the trace. SQL can also query the answer of every analysis by its"
            " name: `select * from kernels`."
        ),
        "",
    ]
    for name, columns in TABLES.items():
        parts += [f"## {name}", ""]
        for column in columns:
            parts += column_entry(column)
        parts.append("")
        own = {column.name for column in columns}
        if also := [column for column in (in_sql(name) if name in VIEWS else ()) if column not in own]:
            twice = (
                " (`_1`: the region's, beside that of the span)" if any(each.endswith("_1") for each in also) else ""
            )
            parts += [*paragraph(f"In SQL they are joined with related tables: {listed(also)}{twice}."), ""]
    parts += ["## totals and links", "", "Only in SQL.", ""]
    everything = "everything that ran, spans and statistics, summed by location and call path: "
    parts += entry("totals", (), everything + listed(in_sql("totals")))
    effects = "cause and effect, from span to span (`kind`: launch, forward_backward): "
    parts += [*entry("links", (), effects + listed(in_sql("links"))), ""]
    for title, values in (("Paradigms", PARADIGMS), ("Roles", ROLES), ("Groups", GROUPS)):
        parts += [f"## {title}", "", *paragraph(listed(values)), ""]
    return "\n".join(parts)


def listed(names: Iterable[str]) -> str:
    """Return names as code, with commas."""
    return ", ".join(f"`{name}`" for name in names)


def keys() -> str:
    """What the keyboard does on the page: the table that the page itself uses."""
    table = json.loads((ROOT / "web/src/state/keys.json").read_text(encoding="utf-8"))
    everywhere = {
        "title": "Everywhere",
        "keys": [
            {"show": "1 … 9  Shift + 1 … 9", "what": "the pages, in the order of the navigation"},
            *table["everywhere"],
        ],
    }
    parts = [
        "# Keys of the page",
        "",
        "The page shows this list when `?` is pressed. Letters stand for positions on the keyboard.",
        "",
    ]
    for title, groups in (("Timeline", table["timeline"]), ("Other pages", table["pages"]), ("", [everywhere])):
        parts += [f"## {title}", ""] if title else []
        for group in groups:
            parts += [f"{'###' if title else '##'} {group['title']}", "", "| key | action |", "|---|---|"]
            parts += [f"| {key_caps(line['show'])} | {line['what']} |" for line in group["keys"]]
            parts.append("")
    return "\n".join(parts)


def key_caps(show: str) -> str:
    """Keys as Markdown shows them."""
    return " ".join(f"`{one}`" for one in show.split("  "))


PAGES = {
    "adapters.md": adapters,
    "analyses.md": analyses,
    "command-line.md": command_line,
    "formats.md": formats,
    "keys.md": keys,
    "mcp.md": mcp,
    "options.md": options,
    "python.md": python,
    "quality.md": quality,
    "rules.md": rules,
    "server.md": server,
    "tables.md": tables,
    "views.md": views,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev gen", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 when a file is not current")
    options = parser.parse_args()
    texts = {REFERENCE / name: NOTE + make() for name, make in PAGES.items()}
    texts |= {ROOT / "src/strobe/api/analyses.pyi": analysis_methods()}
    texts |= {ROOT / path: text for path, text in web_types.files()}
    texts[ROOT / native_tables.PATH] = native_tables.text()
    texts[ROOT / native_tables.NAMES_PATH] = native_tables.names()
    old = [path.name for path, text in texts.items() if not is_current(path, text, not options.check)]
    # It reads the documents, those that were just written among them.
    old += ["llms.txt"] if not is_current(ROOT / "llms.txt", llms(), not options.check) else []
    if options.check and old:
        sys.exit(f"generated files are not current ({', '.join(old)}): run ./dev gen")


def is_current(path: Path, text: str, write: bool) -> bool:
    """Whether a file is up to date; otherwise write it, unless only a check is requested."""
    current = path.exists() and path.read_text(encoding="utf-8") == text
    if write and not current:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.name}")
    return current


if __name__ == "__main__":
    main()
