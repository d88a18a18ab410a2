"""Writes docs/reference/ from the code, so that it cannot say something else: `./dev gen`, or `./dev gen --check`."""

import argparse
import contextlib
import io
import json
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from strobe import registry
from strobe.cli.main import main as cli
from strobe.model.kinds import GROUPS, PARADIGMS, RECORDED_WITH, ROLES
from strobe.model.losses import LOSSES, REMARKS
from strobe.model.plugins import Analysis, Format, Rule
from strobe.model.schema import SCHEMA_VERSION, TABLES
from strobe.model.verb import Verb
from strobe.record.options import GROUPS as RECORDING_GROUPS
from strobe.record.options import OPTIONS, PRESETS
from strobe.server.answers import ROUTES
from strobe.server.endpoints import Parameter
from strobe.store.archive import Job
from strobe.store.sql import VIEWS
from strobe.store.trace import Trace

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs/reference"
NOTE = "<!-- Written by ./dev gen from the code: do not edit. -->\n"


def help_of(*verb: str) -> str:
    """What `strobe VERB --help` prints, on a terminal of 100 columns."""
    os.environ.update(COLUMNS="100", NO_COLOR="1")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        cli([*verb, "--help"])
    return "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())


def command_line() -> str:
    """Every verb with its options, and the exit codes."""
    parts = ["# The command line\n", f"```\n{help_of()}\n```\n"]
    for name in registry.names("cli"):
        verb = registry.load("cli", name)
        assert isinstance(verb, Verb)
        parts.append(f"## strobe {verb.name}\n\n```\n{help_of(verb.name)}\n```\n")
    return "\n".join(parts)


def analyses() -> str:
    """Every analysis: the question it answers, what must have been recorded, its options."""
    parts = [
        "# Analyses",
        "",
        "Each is a verb (`strobe NAME TRACE`), a method (`trace.NAME(...)`) and an address of the view's server.",
        "",
    ]
    for name in registry.names("analyses"):
        analysis = registry.load("analyses", name)
        assert isinstance(analysis, Analysis)
        needs = ", ".join(f"{RECORDED_WITH[need][0]} (`{RECORDED_WITH[need][1]}`)" for need in analysis.needs)
        parts += [f"## {analysis.name}", "", analysis.question, ""]
        parts += [f"Needs: {needs}.", ""] if needs else []
        if analysis.options:
            parts += ["| option | default | meaning |", "|---|---|---|"]
            parts += [f"| `{option.name}` | `{option.default}` | {option.help} |" for option in analysis.options]
            parts.append("")
    return "\n".join(parts)


def rules() -> str:
    """Every rule of the advice."""
    parts = ["# Rules", "", "What `strobe summary` looks for.", "", "| rule | what it recognises |", "|---|---|"]
    for name in registry.names("advice"):
        rule = registry.load("advice", name)
        assert isinstance(rule, Rule)
        parts.append(f"| `{rule.id}` | {rule.title} |")
    return "\n".join([*parts, ""])


def formats() -> str:
    """Every kind of file of another tool."""
    parts = [
        "# Formats",
        "",
        "Files of other tools.",
        "",
        "| format | what it is | suffixes | reads | writes |",
        "|---|---|---|---|---|",
    ]
    for name in registry.names("formats"):
        form = registry.load("formats", name)
        assert isinstance(form, Format)
        both = " | ".join("yes" if each else "no" for each in (form.read, form.write))
        parts.append(f"| `{form.name}` | {form.title} | {' '.join(form.suffixes)} | {both} |")
    return "\n".join([*parts, ""])


def adapters() -> str:
    """Every source of events, as the first line of its file describes it."""
    parts = ["# Adapters", "", "What `strobe run --trace` switches.", "", "| adapter | what it records |", "|---|---|"]
    for name in registry.names("record.adapters"):
        parts.append(f"| `{name}` | {first_line(import_module(f'strobe.record.adapters.{name}').__doc__ or '')} |")
    return "\n".join([*parts, ""])


def options() -> str:
    """Every option of recording, with the names that it has in each place."""
    parts = [
        "# Options of recording",
        "",
        "`--name` of `strobe run`, `STROBE_NAME` in the environment, a key in a file and a keyword of",
        "`strobe.record()` are the same. Of several values the first counts: command line (or keyword),",
        "environment, project, user, preset, default. The project's file is the nearest `strobe.toml`, or",
        "`pyproject.toml` with a table `[tool.strobe]`, in the working directory or above; the user's is",
        "`~/.config/strobe.toml` (or in `$XDG_CONFIG_HOME`). `strobe config` prints what counts here, and who said",
        "it; `job.json` of a trace keeps both.",
        "",
    ]
    for group, title in RECORDING_GROUPS.items():
        rows = [option for option in OPTIONS.values() if option.group == group]
        if rows:
            parts += [f"## {title[0].upper()}{title[1:]}", "", "| option | environment | default | meaning |"]
            parts += ["|---|---|---|---|"]
            parts += [
                f"| `--{each.name}` | `{each.variable}` | {f'`{each.default}`' if each.default else ''} "
                f"| {each.help.replace('|', chr(92) + '|')} |"
                for each in rows
            ]
            parts.append("")
    parts += ["## Presets", "", "| preset | values |", "|---|---|"]
    for name, values in PRESETS.items():
        parts.append(f"| `{name}` | {', '.join(f'`{key} = {text}`' for key, text in values.items())} |")
    return "\n".join([*parts, ""])


def quality() -> str:
    """Every counter of the quality table that has a meaning in words."""
    parts = [
        "# Quality",
        "",
        "Counters of the table `quality`, by process; those that are not there are 0.",
        "",
        "Something is missing from the trace, or wrong in it; `strobe info`, the summary and the overview say so:",
    ]
    for words, title in ((LOSSES, ""), (REMARKS, "Worth knowing, and nothing is missing:")):
        parts += [*(["", title] if title else []), "", "| counter | what was counted |", "|---|---|"]
        parts += [f"| `{what}` | {meaning} |" for what, meaning in words.items()]
    return "\n".join([*parts, ""])


def views() -> str:
    """Every page of the view, as the comment at the top of its file describes it."""
    parts = ["# Views", "", "The pages of `strobe view`.", "", "| view | what it shows |", "|---|---|"]
    for path in sorted((ROOT / "web/src/views").glob("*.tsx")):
        parts.append(f"| `{path.stem}` | {first_line(path.read_text(encoding='utf-8').lstrip('/ '))} |")
    return "\n".join([*parts, ""])


def server() -> str:
    """Every question that the view's server answers, with its parameters and bounds."""
    parts = [
        "# The server",
        "",
        "What `strobe view` answers: `GET api/NAME?parameters`, relative to the address that it prints.",
        "`api/openapi.json` says the same of the trace that is shown, for programs. Every answer has a bound; what",
        "would be larger is refused. A parameter that is unknown, given twice, or beyond its bounds is refused, with",
        'status 400 and a sentence: `{"error": ..., "do": ...}`.',
        "",
        "Beside these, `api/table/NAME` answers the [analysis](analyses.md) of that name: its options are parameters,",
        "and `as=csv` or `as=json` gives a file with all rows.",
        "",
    ]
    for endpoint in ROUTES.values():
        bound = f"At most {size(endpoint.most_bytes)}: {', '.join(f'`{media}`' for media in endpoint.media)}."
        parts += [f"## {endpoint.name}", "", endpoint.question, "", bound, ""]
        if endpoint.parameters:
            parts += ["| parameter | what it may be | default | meaning |", "|---|---|---|---|"]
            parts += [
                f"| `{each.name}` | {bounds(each)} | {default(each)} | {each.help} |" for each in endpoint.parameters
            ]
            parts.append("")
    return "\n".join(parts)


def size(count: int) -> str:
    """A number of bytes in MB of 2^20."""
    return f"{count / 2**20:.1f}".removesuffix(".0") + " MB"


def bounds(parameter: Parameter) -> str:
    """What a parameter may be, in words."""
    if parameter.kind == "choice":
        return ", ".join(f"`{choice}`" for choice in parameter.choices)
    if parameter.kind == "text":
        return f"up to {parameter.most} characters"
    one = f"a {parameter.of.replace('_', ' ')}" if parameter.of else f"{parameter.least} to {parameter.most}"
    return f"up to {parameter.items} numbers with commas, each {one}" if parameter.items else one


def default(parameter: Parameter) -> str:
    """The default of a parameter, in words."""
    if parameter.required:
        return "needed"
    return f"`{parameter.default}`" if parameter.default not in (None, "") else ""


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
        f'Schema version {SCHEMA_VERSION}. `strobe sql TRACE "select ..."` and `trace.sql(...)` see these tables; '
        "times count from the trace's zero. They also see the answer of every analysis, by its name: "
        "`select * from kernels`.",
        "",
    ]
    for name, columns in TABLES.items():
        parts += [f"## {name}", "", "| column | type | unit | meaning |", "|---|---|---|---|"]
        parts += [f"| `{column.name}` | {column.type} | {column.unit} | {column.meaning} |" for column in columns]
        parts.append("")
        own = {column.name for column in columns}
        if also := [column for column in (in_sql(name) if name in VIEWS else ()) if column not in own]:
            twice = (
                " (`_1`: the region's, beside that of the span)" if any(each.endswith("_1") for each in also) else ""
            )
            parts += [f"SQL sees them joined with what they belong to: {listed(also)}{twice}.", ""]
    parts += ["## totals and links", "", "Only in SQL. `totals` is everything that ran, spans and statistics, summed"]
    parts[-1] += f" by location and call path: {listed(in_sql('totals'))}. `links` is cause and effect, from span to"
    parts[-1] += f" span (`kind`: launch, forward_backward): {listed(in_sql('links'))}."
    parts.append("")
    for title, values in (("Paradigms", PARADIGMS), ("Roles", ROLES), ("Groups", GROUPS)):
        parts += [f"## {title}", "", listed(values), ""]
    return "\n".join(parts)


def listed(names: Iterable[str]) -> str:
    """Return names as code, with commas."""
    return ", ".join(f"`{name}`" for name in names)


def keys() -> str:
    """What the keyboard does on the page: the table that the page itself uses."""
    table = json.loads((ROOT / "web/src/base/keys.json").read_text(encoding="utf-8"))
    everywhere = {"title": "Everywhere", "keys": [{"show": "1 … 9", "what": "pages"}, *table["everywhere"]]}
    parts = [
        "# Keys of the page",
        "",
        "The page shows the same when `?` is pressed. Letters are places on the keyboard.",
        "",
    ]
    for title, groups in (("Timeline", table["timeline"]), ("Other pages", table["pages"]), ("", [everywhere])):
        parts += [f"## {title}", ""] if title else []
        for group in groups:
            parts += [f"{'###' if title else '##'} {group['title']}", "", "| key | what it does |", "|---|---|"]
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
    "options.md": options,
    "quality.md": quality,
    "rules.md": rules,
    "server.md": server,
    "tables.md": tables,
    "views.md": views,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev gen", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 when a page is not current")
    options = parser.parse_args()
    old = [name for name, make in PAGES.items() if not is_current(REFERENCE / name, NOTE + make(), not options.check)]
    if options.check and old:
        sys.exit(f"docs/reference is not current ({', '.join(old)}): run ./dev gen")


def is_current(path: Path, text: str, write: bool) -> bool:
    """Whether a page says what the code says; otherwise write it where asked to."""
    current = path.exists() and path.read_text(encoding="utf-8") == text
    if write and not current:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.name}")
    return current


if __name__ == "__main__":
    main()
