"""The snapshot on one page, and what Jupyter shows: numbers by hand, against other tools, and names that mean harm."""

import json
import re
import sqlite3
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import strobe
from strobe.model.schema import Column
from strobe.present.snapshot import Snapshot, snapshot
from strobe.present.snapshot_html import snapshot_html
from strobe.present.snapshot_text import snapshot_text
from strobe.tables.table import make_table
from tests.deep.kineto import US, call, kernel, operator, profile, step, write
from tests.public import FOLDER, exact_sums
from tests.unit.hand_made import make_trace

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
NODE = "autograd::engine::evaluate_function: MmBackward0"
STROBE = str(Path(sys.executable).with_name("strobe"))
HARM = '<script>alert("1")</script><img src=x onerror=alert(2)>'
VOID = {"meta", "br", "hr"}


def of_a_step(n: int, wait: int = 300) -> list[dict[str, object]]:
    """1000 us: waits, runs forward to 600, backward to 900, the optimizer to 950; a kernel of 200 us in forward."""
    at = 1000 * n
    return [
        step(n, at, 1000),
        operator(LOADER, at, wait),
        operator("aten::mm", at + wait, 600 - wait),
        call(at + wait + 5, 5, correlation=n + 1),
        operator(NODE, at + 600, 300),
        operator("Optimizer.step#SGD.step", at + 900, 50),
    ]


def figures(page: Snapshot, card: str) -> dict[str, tuple[float | None, float | None]]:
    """Value and share of the figures of a card, by name."""
    (found,) = [each for each in page.cards if each.name == card]
    return {figure.name: (figure.value, figure.share) for figure in found.figures}


def sentences(page: Snapshot, card: str) -> str:
    (found,) = [each for each in page.cards if each.name == card]
    return " ".join(found.sentences)


class Elements(HTMLParser):
    """Which elements and addresses a page has; fails where they do not nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names, self.addresses, self.handlers, self.text = set[str](), list[str](), list[str](), ""
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.addresses += [str(value) for name, value in attrs if name in ("src", "href")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_four_cards_by_hand(tmp_path):
    events = [event for n in range(6) for event in of_a_step(n)]
    page = snapshot(profile(tmp_path, *events))
    assert figures(page, "step_trace") == {
        "steps": (6, None),
        "step": (1000 * US, 1.0),
        "iteration interval": (300 * US, 0.3),
        "forward and backward": (600 * US, 0.6),
        "tail": (100 * US, 0.1),
    }
    assert "30 % before its forward pass, 60 % in forward and backward, 10 % after them" in sentences(
        page, "step_trace"
    )
    ranking = figures(page, "operators")
    # Of its own: the product without the call in it. Waiting for the loader is no operator.
    assert ranking["mm"] == (6 * 295 * US, pytest.approx(295 / 645))
    assert ranking["mm backward"] == (6 * 300 * US, pytest.approx(300 / 645))
    assert figures(page, "data")["wait for data"] == (300 * US, 0.3)
    assert figures(page, "data")["workers"] == (0, None)
    assert "a gain by other workers is not sure" in sentences(page, "data")
    assert figures(page, "timeline")["operators"] == (3, None)
    assert figures(page, "timeline")["executions"] == (18, None)
    assert figures(page, "timeline")["total operator time"] == (6 * 645 * US, None)
    assert figures(page, "timeline")["streams"] == (0, None)


def test_what_a_stream_ran_at_once_is_one_stream(tmp_path):
    events = [kernel("a", 0, 30), kernel("b", 10, 30), kernel("c", 20, 5, stream=8)]
    assert figures(snapshot(profile(tmp_path, *events)), "timeline")["streams"] == (2, None)


def test_of_several_ranks_the_worst_is_told(tmp_path):
    for rank, wait in ((0, 10), (1, 300)):
        path = tmp_path / "job" / f"rank{rank}.json"
        path.parent.mkdir(exist_ok=True)
        write(path, *(event for n in range(6) for event in of_a_step(n, wait)), rank=rank)
    done = subprocess.run([STROBE, "snapshot", tmp_path / "job", "--json"], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert (told["schema_version"], told["processes"]) == (1, 2)
    data = next(card for card in told["cards"] if card["name"] == "data")
    assert "(rank 1, the worst of 2)" in data["sentences"][0]
    assert data["figures"][0] == {"name": "wait for data", "value": 300 * US, "unit": "ns", "share": 0.3}


def test_on_public_traces_it_says_what_other_tools_say(public):
    page = snapshot(public("kineto/resnet50_loader_workers0.json.gz"))
    told = json.loads((FOLDER / "resnet50_loader_workers0.tensorboard.json").read_text())["performance"]
    loader = next(part for part in told["children"] if part["name"] == "DataLoader")
    value, share = figures(page, "data")["wait for data"]
    assert value == pytest.approx(loader["value"] * US, rel=1e-3)
    # Its steps last until the GPU is done with what they launched.
    assert 100 * share == pytest.approx(loader["extra"], abs=0.6)
    assert figures(page, "step_trace")["step"][0] == pytest.approx(told["value"] * US, rel=0.02)
    for name in ("kineto/resnet50_loader_workers0.json.gz", "kineto/v100_train_rank1of2.json.gz"):
        exact, timeline = exact_sums(name), figures(snapshot(public(name)), "timeline")
        assert timeline["total kernel time"][0] == int(exact["kernel_sum_ns"])
        assert timeline["kernel executions"][0] == int(exact["kernels"])
        assert timeline["kernels"][0] == int(exact["distinct_kernels"])
        assert timeline["streams"][0] == int(exact["streams"])


def test_without_operators_kernels_are_ranked_and_no_pass_is_made_up(public):
    page = snapshot(public("nsys/perlmutter-cloverleaf-cuda.sqlite"))
    database = sqlite3.connect(f"file:{FOLDER / 'nsys/perlmutter-cloverleaf-cuda.sqlite'}?mode=ro", uri=True)
    (total, longest), *_ = database.execute(
        "select (select sum(end - start) from CUPTI_ACTIVITY_KIND_KERNEL), sum(end - start) as each "
        "from CUPTI_ACTIVITY_KIND_KERNEL group by demangledName order by each desc"
    )
    figure = next(card for card in page.cards if card.name == "operators").figures[0]
    assert figure.value >= longest  # kernels whose short names agree are one
    assert figure.share == pytest.approx(figure.value / total)
    assert figures(page, "timeline")["total kernel time"] == (total, None)
    assert "no forward or backward pass" in sentences(page, "step_trace")
    assert list(figures(page, "step_trace")) == ["steps", "step"]


def test_the_text_is_one_page_and_says_what_is_missing():
    page = snapshot(make_trace({"main": []}))
    text = snapshot_text(page, unicode=False)
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 100
    assert len(text.splitlines()) < 60
    assert "No steps were found in this trace" in text
    assert "strobe records PyTorch's DataLoader" in text
    assert "<section" in snapshot_html(page)


def test_the_page_needs_no_script_and_no_network_whatever_names_say(tmp_path):
    events = [event for n in range(6) for event in of_a_step(n)]
    events += [operator(f"aten::{HARM}", 1000 * n + 960, 30) for n in range(6)]
    trace = profile(tmp_path, *events, traceName=HARM)
    done = subprocess.run([STROBE, "snapshot", trace.path, "--html", tmp_path / "page.html"], capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"")
    text = (tmp_path / "page.html").read_text()
    page = Elements(text)
    assert page.names.isdisjoint({"script", "img", "link", "iframe"})
    assert (page.addresses, page.handlers) == ([], [])
    assert "default-src 'none'" in text
    assert HARM.lower() in page.text.lower()  # as text, in the ranking
    assert not re.search(r"https?://", text)
    for word in ("Step trace", "Operator ranking", "Data preparation", "Timeline", "What to do first", "300.0 us"):
        assert word in page.text


def test_jupyter_shows_a_trace_as_a_small_card(tmp_path):
    events = [event for n in range(6) for event in of_a_step(n)]
    card = profile(tmp_path, *events)._repr_html_()
    page = Elements(card)
    assert "Compute-bound: operators take 60 % of the loop's time" in page.text
    assert "data 300.0 us 30 %" in page.text
    assert page.text.count("Worth") <= 3
    assert (page.addresses, page.handlers, "script" in page.names) == ([], [], False)
    assert len(card) < 40_000


def test_jupyter_shows_a_table_with_units_and_escapes_names(tmp_path):
    trace = profile(tmp_path, *(kernel(HARM, 100 * n, 50) for n in range(3)))
    shown = Elements(trace.kernels(by="stream")._repr_html_())
    assert shown.names <= {"div", "table", "thead", "tbody", "tr", "th", "td"}
    assert shown.handlers == []
    assert "150.0 us" in shown.text
    assert "more columns: process" in shown.text
    columns = (Column("name", "string", "", ""), Column("size_bytes", "int64", "bytes", ""))
    many = Elements(make_table(columns, [(HARM, 1_250_000)] * 1404, name=HARM)._repr_html_())
    assert many.names == shown.names
    assert "1 204 more rows" in many.text
    assert many.text.count("1.25 MB") == 200


def test_a_table_without_rows_shows_why(tmp_path):
    trace = make_trace({"main": []})
    assert isinstance(trace, strobe.Trace)
    assert "No GPU did anything" in trace.kernels()._repr_html_()
