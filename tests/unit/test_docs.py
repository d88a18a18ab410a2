"""The documents name files, commands and formats that exist. (What their commands do is tested in tests/record.)"""

import contextlib
import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import strobe
from strobe import registry
from strobe.cli.main import main
from strobe.model.schema import SCHEMA_VERSION, TABLES

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(path for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BY_NAME = {path.relative_to(ROOT).as_posix(): path for path in DOCUMENTS}


@pytest.mark.parametrize("document", BY_NAME)
def test_every_link_leads_somewhere(document: str) -> None:
    text = re.sub(r"```.*?```", "", BY_NAME[document].read_text(), flags=re.DOTALL)
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    missing = [link for link in links if link and not (BY_NAME[document].parent / link).exists()]
    assert missing == []


def test_lines_are_short() -> None:
    long = [
        f"{document}:{number}"
        for document, path in BY_NAME.items()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) >= 120
    ]
    assert long == []


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"])
def test_every_file_that_is_named_exists(document: str) -> None:
    named = re.findall(
        r"`((?:src|native|web|tests|docs|tools|benchmarks|examples)/[\w./-]*)`", (ROOT / document).read_text()
    )
    assert [name for name in named if "NAME" not in name and not (ROOT / name).exists()] == []


def test_every_file_and_folder_in_the_tree_of_the_architecture_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    tree = text.partition("## The tree")[2].partition("```text\n")[2].partition("```")[0]
    parents: list[str] = []
    missing = []
    for line in filter(str.strip, tree.splitlines()):
        names = line.lstrip().partition("  ")[0].split(", ")
        depth = (len(line) - len(line.lstrip())) // 2
        parents[depth:] = [names[0]]
        missing += [name for name in names if not (ROOT / "".join(parents[:depth]) / name).exists()]
    assert len(tree.splitlines()) > 80
    assert missing == []


@pytest.mark.parametrize("document", BY_NAME)
def test_every_developers_command_exists(document: str) -> None:
    listed = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, check=True).stdout
    commands = set(re.findall(r"^  (\w+) ", listed, flags=re.MULTILINE))
    assert {"test", "demo", "check", "new"} <= commands
    assert set(re.findall(r"\./dev (\w+)", BY_NAME[document].read_text())) - commands == set()


def test_an_unknown_command_is_refused() -> None:
    done = subprocess.run([ROOT / "dev", "no_such_command"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "no_such_command" in done.stderr


def test_every_benchmark_and_every_kind_of_plug_in_is_documented() -> None:
    benchmarks = (ROOT / "docs/benchmarks.md").read_text()
    for path in (ROOT / "benchmarks").glob("*.py"):
        if '__name__ == "__main__"' in path.read_text() and path.name != "workloads.py":
            assert f"./dev bench {path.stem}" in benchmarks
    kinds = sorted(path.name for path in (ROOT / "tools/skeletons").iterdir())
    assert kinds == ["adapter", "analysis", "format", "rule", "view"]
    assert sorted(path.stem for path in (ROOT / "docs/how-to").glob("new-*.md")) == [f"new-{kind}" for kind in kinds]


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="argparse words its help differently in other versions")
def test_the_reference_says_what_the_code_says() -> None:
    done = subprocess.run([sys.executable, ROOT / "tools/generate.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_change_of_the_schema_is_in_the_format_changelog() -> None:
    """The newest entry holds a fingerprint of the tables: whoever changes one has to come by and say why."""
    columns = [(name, column.name, column.type, column.unit) for name, table in TABLES.items() for column in table]
    fingerprint = hashlib.sha256(repr((SCHEMA_VERSION, columns)).encode()).hexdigest()[:12]
    changelog = (ROOT / "docs/format/CHANGELOG.md").read_text()
    newest = re.search(r"fingerprint of the tables: `(\w+)`", changelog)
    assert newest is not None
    assert newest[1] == fingerprint, "describe the change at the top of docs/format/CHANGELOG.md, with this fingerprint"


COMMANDS = re.compile(r"(?:`|^\$ |^)strobe ([^`\n]*)", re.MULTILINE)
PROGRAM = re.compile(r"(?: -- | -m | -c |\S+\.py\b|\bpython\b|\bmpicc\b|\bmpirun\b|\btorchrun\b|\bsrun\b|#|\|).*")


@pytest.mark.parametrize(
    "document", [name for name in BY_NAME if not name.startswith("docs/decisions/") and name != "CHANGELOG.md"]
)
def test_every_command_in_a_document_has_a_known_verb_in_kebab_case_and_known_options(
    document: str, capsys: pytest.CaptureFixture[str]
) -> None:
    verbs = {name.replace("_", "-") for kind in ("cli.verbs", "analyses") for name in registry.names(kind)}
    wrong = []
    for command in COMMANDS.findall(BY_NAME[document].read_text()):
        words = PROGRAM.sub("", command).split()
        named = [word for word in words[:2] if word in verbs]
        if words and re.fullmatch(r"[a-z]+(?:_[a-z]+)+", words[0]):
            wrong.append(command)
        if not named:
            continue
        with contextlib.suppress(SystemExit):
            main([named[0], "--help"])
        known = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", capsys.readouterr().out))
        wrong += [f"{command}: {word}" for word in words if word.startswith("-") and option(word) not in known]
    assert wrong == []


def option(word: str) -> str:
    """The option that a word of a command line gives, without its value and punctuation behind it."""
    return word.partition("=")[0].rstrip(".,;:)")


def test_the_reference_of_python_has_every_public_name_with_its_types() -> None:
    text = (ROOT / "docs/reference/python.md").read_text()
    assert re.findall(r"^## strobe\.(\w+)$", text, re.MULTILINE) == sorted(set(strobe.__all__) - {"__version__"})
    assert "strobe.last(n: int = 0) -> Trace\n" in text
    assert "Table.head(count: int) -> Table\n" in text
    assert "    steps: tuple[int, int] | None = None,\n" in text
    assert "[critical_path](analyses.md#critical-path)" in text
