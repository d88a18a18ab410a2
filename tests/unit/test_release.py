"""`./dev release`: version, date, notes, and the wheels without which nothing changes."""

import datetime
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import release

sys.path.pop(0)

DAY = datetime.date(2030, 2, 1)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "src/strobe").mkdir(parents=True)
    (tmp_path / "src/strobe/__init__.py").write_text('"""Docs."""\n\n__version__ = "0.1.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## 0.2.0 (unreleased)\n\n### New\n\n- This.\n\n## 0.1.0 (2029-01-01)\n\n- That.\n"
    )
    return tmp_path


def test_a_release_sets_version_and_date_and_its_notes_are_its_own_section(project: Path) -> None:
    assert release.release(project, "0.2.0", DAY) == "### New\n\n- This.\n"
    assert (project / "src/strobe/__init__.py").read_text() == '"""Docs."""\n\n__version__ = "0.2.0"\n'
    assert (project / "CHANGELOG.md").read_text() == (
        "# Changelog\n\n## 0.2.0 (2030-02-01)\n\n### New\n\n- This.\n\n## 0.1.0 (2029-01-01)\n\n- That.\n"
    )


@pytest.mark.parametrize(
    ("version", "sentence"),
    [
        ("0.0.9", "release: 0.0.9 does not come after 0.1.0"),
        ("0.1.0", "release: 0.1.0 does not come after 0.1.0"),
        ("next", "release: 'next' is not a version such as 1.2.3"),
    ],
)
def test_a_version_that_cannot_be_the_next_one_changes_nothing(project: Path, version: str, sentence: str) -> None:
    before = {file: file.read_text() for file in project.rglob("*.*")}
    with pytest.raises(SystemExit) as ended:
        release.release(project, version, DAY)
    assert str(ended.value) == sentence
    assert {file: file.read_text() for file in project.rglob("*.*")} == before


def test_without_an_unreleased_section_there_is_nothing_to_release(project: Path) -> None:
    release.release(project, "0.2.0", DAY)
    with pytest.raises(SystemExit, match="has no section"):
        release.release(project, "0.3.0", DAY)


# Notes what it was called with and which version it would build; fails where a file asks for it.
WHEELS = """
import pathlib, sys
PYTHONS = ("3.11", "3.12")
if __name__ == "__main__":
    pathlib.Path("dist").mkdir(exist_ok=True)
    version = pathlib.Path("src/strobe/__init__.py").read_text().split()[-1]
    pathlib.Path("dist/made").write_text(" ".join([version, *sys.argv[1:]]))
    sys.exit("a wheel failed" if pathlib.Path("dist/broken").exists() else 0)
"""


def test_a_release_has_its_wheels_or_changes_nothing(project: Path) -> None:
    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=project, env=named, capture_output=True, text=True, check=True
        ).stdout

    def released(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "tools/release.py", *words]
        return subprocess.run(command, cwd=project, env=named, capture_output=True, text=True, check=False)

    person = {f"GIT_{role}_{what}": "ada@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    named = {**os.environ, **person, "PYTHONDONTWRITEBYTECODE": "1"}
    (project / "tools").mkdir()
    shutil.copy(release.__file__, project / "tools/release.py")
    (project / "tools/wheels.py").write_text(WHEELS)
    (project / ".gitignore").write_text("dist\n")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "All")
    (project / "dist").mkdir()
    (project / "dist/broken").touch()
    failed = released("0.2.0")
    assert failed.returncode == 1
    assert failed.stderr == "a wheel failed\nrelease: not all wheels were made: version and date are as before\n"
    assert (git("status", "--porcelain"), git("tag")) == ("", "")
    (project / "dist/broken").unlink()
    done = released("0.2.0")
    assert (done.returncode, done.stdout) == (0, "### New\n\n- This.\n"), done.stderr
    assert (project / "dist/made").read_text() == '"0.2.0" --pythons 3.11 3.12'
    assert (project / "dist/notes.md").read_text() == done.stdout
    assert (git("status", "--porcelain"), git("tag"), git("log", "-1", "--format=%s")) == (
        "",
        "v0.2.0\n",
        "Version 0.2.0\n",
    )
