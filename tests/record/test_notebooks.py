"""Notebooks as people run them: cells are executed by a real kernel, and what they show is read from the notebook.

What a cell computes, and how often it calls its functions, is known from the cell itself.
"""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from strobe.present.notebook import framed_card, trace_card
from tests.deep.kineto import kernel, operator, profile, step
from tests.unit.hand_made import make_trace, train_steps

EXAMPLE = Path(__file__).parents[2] / "examples/notebook.ipynb"
LOOP = """
def work(step):
    return sum(range(20_000)) + step

for step in range(60):
    total = work(step)
"""
MOST_BYTES = 300_000  # of what a cell shows

Run = Callable[..., list[NotebookNode]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Executes cells in a new kernel, and returns them with their outputs."""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)

    def execute(*cells: str) -> list[NotebookNode]:
        notebook = nbformat.v4.new_notebook()
        notebook.cells = [nbformat.v4.new_code_cell(text) for text in ("%load_ext strobe", *cells)]
        resources = {"metadata": {"path": str(tmp_path)}}
        NotebookClient(notebook, timeout=300, allow_errors=True, resources=resources).execute()
        assert notebook.cells[0].outputs == []
        return list(notebook.cells[1:])

    return execute


def of_stream(cell: NotebookNode, name: str) -> str:
    return "".join(each.text for each in cell.outputs if each.output_type == "stream" and each.name == name)


def cards(cell: NotebookNode) -> list[str]:
    """What a cell displays as HTML, as text."""
    shown = [each.data["text/html"] for each in cell.outputs if each.output_type == "display_data"]
    assert all(len(each.encode()) < MOST_BYTES and "<script" not in each for each in shown)
    return [re.sub("<[^>]+>", " ", each) for each in shown]


def results(cell: NotebookNode) -> list[str]:
    return [each.data["text/plain"] for each in cell.outputs if each.output_type == "execute_result"]


def errors(cell: NotebookNode) -> list[tuple[str, str]]:
    return [(each.ename, each.evalue) for each in cell.outputs if each.output_type == "error"]


CALLS = "trace.sql(\"select count(*) as n from spans where name = 'work'\").rows()[0][0]"


def test_a_recorded_cell_prints_and_returns_what_it_did_and_has_a_card(run: Run) -> None:
    recorded, calls, last, underscore = run(
        f"%%strobe -n trace\n{LOOP}\nprint('total', total)\ntotal", CALLS, "strobe.last().path == trace.path", "_3"
    )
    assert of_stream(recorded, "stdout") == f"total {sum(range(20_000)) + 59}\n"
    assert results(recorded) == [str(sum(range(20_000)) + 59)]
    assert of_stream(recorded, "stderr") == ""
    (card,) = cards(recorded)
    assert "notebook.ipynb · 1 process" in card
    assert "60 steps" in card
    assert "recording took about" in card
    assert "%strobe_view shows its timeline; saved in" in card
    assert results(calls) == ["60"]
    assert errors(last)[0][0] == "NameError"  # only what `-n` names becomes a variable
    assert results(underscore) == ["60"]


def test_what_fails_or_is_interrupted_is_as_without_and_its_trace_is_kept(run: Run) -> None:
    broken = f"{LOOP}\nwork('a')"
    plain, failed, calls, interrupted, kept, still = run(
        broken,
        f"%%strobe -n trace\n{broken}",
        CALLS,
        f"%%strobe -n trace\nimport os, signal\n{LOOP}\nos.kill(os.getpid(), signal.SIGINT)\nfor _ in range(10**9): 0",
        CALLS,
        "import strobe\nstrobe.current()",
    )
    assert errors(plain) == errors(failed)
    assert errors(failed)[0][0] == "TypeError"
    (trouble,) = [each for each in failed.outputs if each.output_type == "error"]
    assert "magics.py" not in "".join(trouble.traceback)
    assert results(calls) == ["61"]
    assert " steps" in cards(failed)[0]
    assert errors(interrupted)[0][0] == "KeyboardInterrupt"
    assert " steps" in cards(interrupted)[0]
    assert results(kept) == ["60"]
    assert (results(still), errors(still)) == ([], [])  # nothing is recorded any more


def test_a_cell_may_await_and_have_other_magics(run: Run) -> None:
    awaited, timed, calls = run(
        "%%strobe\nimport asyncio\nawait asyncio.sleep(0.01)\n40 + 2", f"%%strobe -n trace\n%%time\n{LOOP}", CALLS
    )
    assert results(awaited) == ["42"]
    assert len(cards(awaited)) == len(cards(timed)) == 1
    assert "Wall time" in of_stream(timed, "stdout")
    assert results(calls) == ["60"]


def test_the_options_of_strobe_run_hold(run: Run) -> None:
    cell, about = run(
        f"%%strobe --keep 5 -o runs/mine --trace -torch -n trace\n{LOOP}",
        "from strobe.trace.archive import read_job\n"
        "options = read_job(trace.path).settings['options']\n"
        "trace.path.name, options['keep']['value'], options['trace']['value']",
    )
    assert "runs/mine.strobe" in cards(cell)[0]
    assert results(about) == ["('mine.strobe', '5', '-torch')"]


MISTAKES = {
    "%%strobe --keep some\nprint('ran')": "keep: 'some' is not a number of iterations",
    "%%strobe --nope\nprint('ran')": "unrecognized arguments: --nope",
    "%%strobe -n 1x\nprint('ran')": "'1x' cannot be the name of a variable",
    "%%strobe --keep '1\nprint('ran')": "the options cannot be read",
    "%%strobe\n%%strobe\nprint('ran')": "this cell is being recorded already",
    "%%strobe": "the cell body is empty",
    "%strobe_view nowhere": "no such trace: 'nowhere'",
    "%strobe_view --height 1": "--height",
    "%strobe\n%strobe_view": "the page cannot be embedded while this kernel is recorded",
}


def test_a_mistake_is_one_sentence_and_the_cell_does_not_run(run: Run) -> None:
    *refused, still = run(*MISTAKES, "import strobe\nprint(strobe.current())")
    for cell, reason in zip(refused, MISTAKES.values(), strict=True):
        message = of_stream(cell, "stderr")
        assert message.startswith("UsageError: ")
        assert reason in message
        assert "Traceback" not in message
        assert (of_stream(cell, "stdout"), errors(cell)) == ("", [])
    assert of_stream(still, "stdout") == "None\n"


def test_help_lists_the_options(run: Run) -> None:
    of_cell, of_view = run("%strobe --help", "%strobe_view --help")
    assert "--keep" in of_stream(of_cell, "stdout")
    assert "--height" in of_stream(of_view, "stdout")
    assert (errors(of_cell), cards(of_cell)) == ([], [])


def test_the_example_runs_and_shows_the_static_card_where_no_page_can_be_embedded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    notebook = nbformat.read(EXAMPLE, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    recorded, table, shown = [cell for cell in notebook.cells if cell.cell_type == "code"][-3:]
    assert "200 steps" in cards(recorded)[0]
    assert "load_batch" in table.outputs[0].data["text/html"]
    (card,) = cards(shown)
    assert "This notebook cannot show the page itself; in a terminal: strobe view" in card
    assert "<iframe" not in shown.outputs[0].data["text/html"]


def test_cards_are_bounded_and_only_the_live_one_has_a_frame(tmp_path: Path) -> None:
    long = "k" * 30_000
    events = [event for n in range(6) for event in (step(n, 1000 * n, 1000), operator(long, 1000 * n, 900))]
    trace = profile(tmp_path, *events, kernel(long, 100, 500))
    assert len(trace_card(trace).encode()) < MOST_BYTES
    framed = framed_card(make_trace({"main": train_steps(20)}), '/proxy/1/"x/', 300, proxied=True)
    assert 'src="/proxy/1/&quot;x/"' in framed
    assert "<script" not in framed


def served(trace: Path, options: Sequence[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "strobe", "view", str(trace), "--no-browser", "--until-eof", *options]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def policy_of(address: str) -> str:
    try:
        with urllib.request.urlopen(address) as answer:
            return str(answer.headers["Content-Security-Policy"])
    except urllib.error.HTTPError as error:
        return str(error.headers["Content-Security-Policy"])


def test_other_origins_may_frame_the_page_on_request_only_and_the_server_ends_with_its_input(tmp_path: Path) -> None:
    trace = tmp_path / "a.strobe"
    subprocess.run([sys.executable, "-m", "strobe", "run", "--quiet", "-o", str(trace), "-c", "print()"], check=True)
    addresses = set()
    for options, frames in (([], "'self'"), (["--allow-frame", "http://hub:8888"], "'self' http://hub:8888")):
        with served(trace, options) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            addresses.add(address.split("/")[3])
            for path in ("", "api/run", "nothing"):
                assert policy_of(address + path).endswith(f"frame-ancestors {frames}")
            server.stdin.close()
            assert server.wait(60) == 0
    assert len(addresses) == 2  # what a notebook has saved opens nothing later
    with served(trace, ["--allow-frame", "http://a; script-src *"]) as refused:
        assert refused.wait(60) == 2
