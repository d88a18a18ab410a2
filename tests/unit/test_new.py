"""`./dev new` writes skeletons that pass every check as they are. `./dev check` sees to the files that were there."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import strobe.native

ROOT = Path(__file__).parents[2]
KINDS = ("adapter", "analysis", "format", "rule", "view")
# Runs a tool on the copy of the tree: the editable install would answer `import strobe` with the real one.
RUN = """
import runpy, sys
sys.meta_path = [finder for finder in sys.meta_path if "ditable" not in type(finder).__module__]
sys.path[:0] = ["src", "."]
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
LINT = "import sys; from importlinter.cli import lint_imports_command as c; sys.exit(c(['--no-cache', '--no-logo']))"


def run(folder: Path, *command: str | Path) -> tuple[int, str]:
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def copy_of_the_tree(folder: Path) -> Path:
    """Sources, tests and tools, with links to what was built."""
    ignore = shutil.ignore_patterns("__pycache__", "node_modules", "dist")
    for name in ("src", "tests", "tools", "web", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignore)
    for file in ("pyproject.toml", "README.md", "llms.txt"):
        shutil.copy(ROOT / file, folder)
    built = Path(strobe.native.__file__).parent
    for place in strobe.__path__ if not (built / "lib").exists() else [built]:
        for path in Path(place).iterdir():
            if not (folder / "src/strobe" / path.name).exists():
                (folder / "src/strobe" / path.name).symlink_to(path)
    if (ROOT / "web/node_modules").exists():
        (folder / "web/node_modules").symlink_to(ROOT / "web/node_modules")
    if (ROOT / ".mypy_cache").exists():  # of `./dev check`: only what is new is looked at
        shutil.copytree(ROOT / ".mypy_cache", folder / ".mypy_cache")
    return folder


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree in which one plug-in of each kind was just begun."""
    folder = copy_of_the_tree(tmp_path_factory.mktemp("tree"))
    for kind in KINDS:
        status, text = run(folder, sys.executable, "-c", RUN, "tools.new", kind, f"planted_{kind}")
        assert status == 0, text[-3000:]
    return folder


def planted(tree: Path, pattern: str) -> list[Path]:
    return [path for path in tree.rglob(pattern) if "node_modules" not in path.parts]


def test_the_files_of_every_kind_are_written(tree: Path) -> None:
    for place in (
        "src/strobe/analyses/program/planted_analysis.py",
        "src/strobe/answers/program/planted_analysis.py",
        "src/strobe/advice/planted_rule.py",
        "src/strobe/formats/planted_format.py",
        "src/strobe/record/adapters/planted_adapter.py",
        "web/src/views/planted_view.tsx",
    ):
        assert (tree / place).is_file()
        assert "skeleton_name" not in (tree / place).read_text()


def test_the_reference_has_their_entries(tree: Path) -> None:
    pages = "".join(path.read_text() for path in (tree / "docs/reference").glob("*.md"))
    assert [kind for kind in KINDS if f"planted_{kind}" not in pages] == []


def test_linter_and_formatter_have_nothing_to_say(tree: Path) -> None:
    files = planted(tree, "*planted_*.py")
    assert len(files) >= 8
    for check in (["check"], ["format", "--check"]):
        status, text = run(tree, sys.executable, "-m", "ruff", *check, *files)
        assert status == 0, text


def test_types_are_sound(tree: Path) -> None:
    files = [path for path in planted(tree, "*planted_*.py") if path.is_relative_to(tree / "src")]
    assert len(files) == 5
    status, text = run(tree, sys.executable, "-m", "mypy", *files)
    assert status == 0, text


def test_every_contract_is_kept(tree: Path) -> None:
    code = RUN.partition("sys.argv")[0] + LINT
    status, text = run(tree, sys.executable, "-c", code)
    assert status == 0, text


def test_their_own_tests_pass(tree: Path) -> None:
    tests = [path.relative_to(tree) for path in tree.glob("tests/**/test_*planted_*.py")]
    assert len(tests) == 4
    status, text = run(tree, sys.executable, "-c", RUN, "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert status == 0, text


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_page_with_a_new_view_is_sound(tree: Path) -> None:
    web, files = tree / "web", planted(tree, "planted_*.ts*")
    assert len(files) == 2
    # The compiler also looks at what these import, and nowhere else.
    project = {"extends": "./tsconfig.json", "include": [str(file) for file in files]}
    (web / "tsconfig.planted.json").write_text(json.dumps(project))
    for command in (
        ["tsc", "--project", "tsconfig.planted.json"],
        ["biome", "check", *files],
        ["vitest", "run", "src/layers.test.ts", "src/views/planted_view.test.ts"],
    ):
        status, text = run(web, f"node_modules/.bin/{command[0]}", *command[1:])
        assert status == 0, text[-3000:]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["analysis", "Not-A-Name"], "not a name for a plug-in"),
        (["analysis", "planted_analysis"], "exists already"),
        (["thing", "x"], "invalid choice"),
    ],
)
def test_what_cannot_be_made_is_said(tree: Path, arguments: list[str], complaint: str) -> None:
    status, text = run(tree, sys.executable, "-c", RUN, "tools.new", *arguments)
    assert status != 0
    assert complaint in text
