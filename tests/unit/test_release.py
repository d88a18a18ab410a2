"""`./dev release`: version, date and notes."""

import datetime
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
