"""The HTML file in numbers."""

import html
import json
import re
from pathlib import Path

import pytest

import strobe
from strobe.formats.html import FORMAT
from tests.unit.hand_made import make_trace, span


def tree_of(text: str) -> dict[str, list[object]]:
    found = re.search(r"^const tree = (.*);$", text, re.M)
    assert found is not None
    tree: dict[str, list[object]] = json.loads(found[1])
    return tree


def test_the_tree_holds_the_sums_of_all_call_paths(tmp_path: Path) -> None:
    thread = [span("step", 0, 100, span("aten::mm", 10, 40), span("load", 50, 90)), span("step", 100, 150)]
    assert FORMAT.write is not None
    FORMAT.write(make_trace({"main": thread}), tmp_path / "a.html")
    tree = tree_of((tmp_path / "a.html").read_text())
    names = [tree["names"][int(str(number))] for number in tree["name"]]
    assert list(zip(names, tree["depth"], tree["calls"], tree["total"], tree["own"], strict=True)) == [
        ("step", 0, 2, 150, 80),
        ("load", 1, 1, 40, 40),
        ("aten::mm", 1, 1, 30, 30),
    ]


def test_names_cannot_break_out(tmp_path: Path) -> None:
    name = "</script><script>alert(1)</script>@TREE@<img src=x>"
    assert FORMAT.write is not None
    FORMAT.write(make_trace({"main": [span(name, 0, 10)]}), tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text()
    assert "<script>alert" not in text
    assert "<img" not in text
    assert html.escape(name) in text
    assert tree_of(text)["names"] == [name]


def test_the_file_is_bounded(tmp_path: Path) -> None:
    spans = [span(f"{'x' * 300}_{i}", i * 10, i * 10 + 5 + i % 3) for i in range(20_000)]
    assert FORMAT.write is not None
    notes = FORMAT.write(make_trace({"main": spans}), tmp_path / "a.html")
    assert (tmp_path / "a.html").stat().st_size < 4_000_000
    assert any("call paths take too little time" in note for note in notes)


def test_a_file_that_is_there_is_replaced_only_when_the_new_one_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.html"
    target.write_text("before")
    broken = make_trace({"main": [span("f", 0, 10)]})
    monkeypatch.setattr("strobe.formats.html.page._tree", None)
    with pytest.raises(TypeError):
        broken.export(target)
    assert [each.name for each in tmp_path.iterdir()] == ["a.html"]
    assert target.read_text() == "before"
    assert isinstance(broken, strobe.Trace)
