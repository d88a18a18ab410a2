"""The page of GPUs: what the page says against the fake driver's own log, and profiles whose answers are on paper."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.deep.kineto import copy, event, kernel, step, write
from tests.gpu.fake_cuda import read_truth
from tests.gpu.measured import UUID, record
from tests.public import exact_sums
from tests.ui.conftest import view, watched_page
from tests.ui.driving import complaints, wait_for_rest

A100 = {
    "id": 0, "name": "NVIDIA A100", "computeMajor": 8, "computeMinor": 0, "numSms": 108, "totalGlobalMem": 80 << 30,
    "maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536, "sharedMemPerMultiprocessor": 167936,
}  # fmt: skip
RANKS = 6


@dataclass(frozen=True)
class Ran:
    """A run on the fake GPU: its page, and the parts of the time that the driver's log gives."""

    address: str
    rungs: tuple[str, str, str]
    computes: str
    copies: str
    idle: str
    longest_gap_ms: float


def percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """Twelve steps on what the process calls GPU 0, and the machine GPU 1; GPU 0 of the machine is not used."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    folder = tmp_path_factory.mktemp("devices")
    used = {"uuid": UUID, "gpm": 1, "reasons": 0x4 | 0x20, "memory": 5 << 30}
    trace = record(folder, {"uuid": "GPU-other", "gpm": 1}, used)
    work = [row for row in read_truth(folder / "truth.jsonl") if row["what"] in ("kernel", "memcpy")]
    whole = max(row["end_ns"] for row in work) - min(row["start_ns"] for row in work)
    # One stream: nothing runs at the same time.
    time = {
        name: sum(row["end_ns"] - row["start_ns"] for row in work if row["name"] == name) / whole
        for name in ("few", "wide")
    }
    copied = sum(row["end_ns"] - row["start_ns"] for row in work if row["what"] == "memcpy") / whole
    busy = time["few"] + time["wide"]
    # 66 of 132 multiprocessors with 32 of 64 warps; all of them with 16 (65536 registers, 128 * 32 a warp).
    gaps = [later["start_ns"] - row["end_ns"] for row, later in pairwise(sorted(work, key=itemgetter("start_ns")))]
    rungs = busy, time["few"] / 2 + time["wide"], time["few"] / 4 + time["wide"] / 4
    with view(trace) as address:
        shares = map(percent, (busy, copied, 1 - busy - copied))
        yield Ran(address, tuple(map(percent, rungs)), *shares, longest_gap_ms=max(gaps) / 1e6)


@pytest.fixture
def devices(browser: Browser, recorded: Ran) -> Iterator[Page]:
    with watched_page(browser, recorded.address) as page:
        page.goto(f"{recorded.address}#page=devices")
        expect(page.get_by_role("region", name="GPU 0")).to_be_visible()
        yield page


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Six ranks with a GPU each. In 100 us rank r has 10 (r + 1) us of kernels that fill a half, and at the end 10 us
    of one that fills it with half of the warps: rank 0 has 20, 15 and 7.5 %, rank 5 has 70, 40 and 20 %."""
    folder = tmp_path_factory.mktemp("devices") / "job"
    folder.mkdir()
    shape = {"block": [1024, 1, 1], "registers_per_thread": 32, "shared_memory": 0}
    for rank in range(RANKS):
        few = kernel("few", 0, 10 * (rank + 1), device=rank, grid=[54, 1, 1], **shape)
        full = kernel("full", 90, 10, device=rank, grid=[108, 1, 1], **shape)
        properties = [{**A100, "id": number} for number in range(RANKS)]
        write(folder / f"rank{rank}.json", few, full, rank=rank, deviceProperties=properties)
    with view(folder) as address:
        yield address


@pytest.fixture
def many(browser: Browser, job: str) -> Iterator[Page]:
    with watched_page(browser, job) as page:
        page.goto(f"{job}#page=devices")
        expect(page.get_by_role("grid", name="GPUs")).to_be_visible()
        yield page


def names(cells: Locator) -> list[str]:
    """What the buttons are called."""
    return [cell.get_attribute("aria-label") or "" for cell in cells.get_by_role("button").all()]


def rungs(card: Locator) -> list[str]:
    """The numbers of the ladder, from the top."""
    numbers = card.locator(".ladder:not(.measured) .number")
    expect(numbers.first).to_be_visible()
    return numbers.all_inner_texts()


def test_the_ladder_is_what_the_driver_did(devices: Page, recorded: Ran) -> None:
    card = devices.get_by_role("region", name="GPU 0", exact=True)
    assert rungs(card) == list(recorded.rungs)
    expect(card.locator(".rung.worst")).to_have_count(1)
    expect(card.locator(".rung.worst")).to_contain_text("busy")
    expect(card.locator(".rung.worst")).to_contain_text("most is lost here")
    expect(card).to_contain_text(re.compile(r"Most is lost while no kernel runs: \d+ % of the GPU\."))
    told = f"computes {recorded.computes}, only communicates 0 %, only copies {recorded.copies}, idle {recorded.idle}"
    expect(card.get_by_role("img", name=told)).to_be_visible()


def test_what_the_gpu_measured_is_that_of_its_uuid(devices: Page) -> None:
    card = devices.get_by_role("region", name="GPU 0", exact=True)
    expect(card).to_contain_text("Fake GPU 0")
    expect(card).to_contain_text("compute capability 9.0 · 132 SMs · 85.0 GB · the machine’s GPU 1")
    measured = card.locator(".ladder.measured .rung")
    # The fake's answers.
    expect(measured.filter(has_text="SM activity").locator(".number")).to_have_text("20 %")
    expect(measured.filter(has_text="SM occupancy").locator(".number")).to_have_text("30 %")
    # Never alone.
    expect(measured.filter(has_text="utilisation")).to_be_visible()
    facts = card.locator(".gpu-facts")
    for text in (
        "5.37 GB of 85.0 GB, 6.3 %",
        "400 W mean, 400 W at most",
        "51.0 °C at most",
        "1 980 MHz SMs, 2 619 MHz memory",
        "power cap 100 %",
        "temperature (software) 100 %",
    ):
        expect(facts).to_contain_text(text)
    others = devices.get_by_role("region", name="1 GPU without work of this run")
    expect(others.get_by_role("row").nth(1)).to_contain_text("GPU 0 NVIDIA H100 80GB HBM3")
    expect(others).to_contain_text("3.22 GB")


def test_facts_of_the_gpu_and_the_counting_are_told_to_those_who_ask(devices: Page) -> None:
    card = devices.get_by_role("region", name="GPU 0", exact=True)
    expect(card.get_by_text(UUID)).to_be_hidden()
    card.get_by_text(re.compile("What this GPU is")).focus()
    devices.keyboard.press("Enter")
    expect(card.get_by_text(UUID)).to_be_visible()
    expect(card.locator(".gpu-properties")).to_contain_text(re.compile("registers of a multiprocessor\\s*65 536"))
    card.get_by_text("How this is counted").click()
    expect(card.get_by_text("what nvidia-smi calls utilisation")).to_be_visible()


def test_numbers_lead_to_the_timeline(devices: Page, recorded: Ran) -> None:
    card = devices.get_by_role("region", name="GPU 0", exact=True)
    card.get_by_role("button", name="on the timeline").click()
    expect(devices).to_have_url(re.compile("page=timeline.*pin="))
    pinned = devices.locator(".gutter").first
    for row in ("GPU 1 load", "GPU 1 power", "stream 7"):
        expect(pinned).to_contain_text(row)
    devices.keyboard.press("9")
    why = card.get_by_role("list", name="Why GPU 0 idled")
    # The program sleeps for 30 ms a step, and longer where the machine is busy.
    assert recorded.longest_gap_ms >= 30
    # One for each cause: on a busy machine the longest gap need not have the cause of most idle time.
    gaps = why.get_by_role("button", name=re.compile(r"longest [\d.]+ ms"))
    expect(gaps.first).to_be_visible()
    shown = [float(text.split()[1]) for text in gaps.all_inner_texts()]
    assert max(shown) == pytest.approx(recorded.longest_gap_ms, rel=0.01)
    gaps.first.click()
    expect(devices).to_have_url(re.compile("page=timeline.*gap="))
    expect(devices.get_by_role("complementary", name="Facts about what is chosen")).to_contain_text("Idle")


def test_streams_are_not_counted_as_threads(devices: Page) -> None:
    expect(devices.get_by_role("contentinfo")).to_contain_text("1 process, 1 thread, 1 stream")


def test_the_overview_leads_to_the_page(devices: Page, recorded: Ran) -> None:
    devices.goto(f"{recorded.address}#page=overview")
    computes = devices.get_by_role("button", name=re.compile("^(GPU 0: )?computes")).first
    expect(computes).to_be_visible()
    wait_for_rest(devices)
    computes.click()
    expect(devices).to_have_url(re.compile("page=(devices|kernels)"))


def test_many_gpus_are_cells_and_a_table_and_the_chosen_one_a_card(many: Page, job: str) -> None:
    spread = "busy: 45 % on average, from 20 % (rank 0, GPU 0) to 70 % (rank 5, GPU 5)"
    cells = many.get_by_role("region", name=spread)
    assert names(cells) == [f"rank {r}, GPU {r}: {20 + 10 * r} %" for r in range(RANKS)]
    many.get_by_role("toolbar").get_by_role("button", name="warps there").click()
    cells = many.get_by_role("region", name=re.compile("^warps there: 14 % on average"))
    assert [name.partition(": ")[2] for name in names(cells)] == ["7.5 %", "10 %", "13 %", "15 %", "18 %", "20 %"]
    every = many.get_by_role("region", name="All 6 GPUs")
    assert rungs(every) == ["45 %", "28 %", "14 %"]
    # Idle 30 %, half-empty multiprocessors 30 %, warps 20 %: of equals the first.
    expect(every).to_contain_text("Most is lost while no kernel runs")
    cells.get_by_role("button", name="rank 5, GPU 5").click()
    card = many.get_by_role("region", name="rank 5, GPU 5", exact=True)
    assert rungs(card) == ["70 %", "40 %", "20 %"]
    many.reload()
    expect(card).to_be_visible()
    expect(many.get_by_role("toolbar").get_by_role("button", name="warps there")).to_have_attribute(
        "aria-pressed", "true"
    )
    many.keyboard.press("Escape")
    expect(every).to_be_visible()


def test_the_table_of_gpus_is_sorted_searched_and_walked(many: Page) -> None:
    many.get_by_role("button", name="busy", exact=True).last.click()
    first = many.locator(".grid-row").first
    expect(first).to_contain_text("70 %")
    assert first.locator("td").all_inner_texts()[:5] == ["5", "5", "70 %", "40 %", "20 %"]
    grid = many.get_by_role("grid", name="GPUs")
    grid.focus()
    many.keyboard.press("End")
    card = many.get_by_role("region", name="rank 0, GPU 0", exact=True)
    assert rungs(card) == ["20 %", "15 %", "7.5 %"]
    many.keyboard.press("Enter")
    expect(many).to_have_url(re.compile("page=timeline.*pin=l"))
    expect(many.locator(".gutter").first).to_contain_text("GPU 0 stream 7")
    many.keyboard.press("9")
    many.get_by_role("searchbox", name="Search this table").fill("V100")
    expect(many.get_by_text("No row passes the filter.")).to_be_visible()
    many.get_by_role("searchbox", name="Search this table").fill("a100")
    expect(many.locator(".grid-row")).to_have_count(RANKS)
    with many.expect_download() as download:
        many.get_by_role("link", name="CSV", exact=True).click()
    rows = list(csv.DictReader(download.value.path().open()))
    assert [float(row["busy_share"]) for row in rows] == pytest.approx([0.2, 0.3, 0.4, 0.5, 0.6, 0.7])


def test_what_the_trace_does_not_know_is_said(browser: Browser, tmp_path: Path) -> None:
    """No word about the GPU; and one that copied only."""
    kernels = [kernel("a", 0, 10), kernel("b", 30, 10), copy("Memcpy HtoD (Pinned -> Device)", 0, 10, device=1)]
    write(tmp_path / "unknown.json", *kernels)
    with view(tmp_path / "unknown.json") as address, watched_page(browser, address) as page:
        page.goto(f"{address}#page=devices")
        card = page.get_by_role("region", name="GPU 0", exact=True)
        assert rungs(card) == ["50 %", "–", "–"]
        expect(card).to_contain_text("No kernel runs for 50 % of the time; how full the GPU is otherwise")
        expect(card).to_contain_text('pip install "strobe[gpu]"')
        copied = page.get_by_role("region", name="GPU 1", exact=True)
        expect(copied.locator(".ladder")).to_have_count(0)
        expect(copied.get_by_role("img", name="only copies 100 %")).to_be_visible()


def test_gpus_that_were_only_read_are_shown(browser: Browser, tmp_path: Path) -> None:
    load = [
        {"ph": "C", "cat": "gpu", "name": f"GPU 2: {name}", "pid": 100, "tid": 0, "ts": t, "args": {"value": value}}
        for t in (0, 10, 20)
        for name, value in (("utilisation", 40), ("power", 150))
    ]
    write(tmp_path / "read.json", step(0, 0, 30), event("cpu_op", "work", 0, 20, 100, 1), *load)
    with view(tmp_path / "read.json") as address, watched_page(browser, address) as page:
        page.goto(f"{address}#page=devices")
        card = page.get_by_role("region", name="GPU 2", exact=True)
        expect(card).to_contain_text("Nothing of this run was recorded on it")
        expect(card.locator(".rung").filter(has_text="utilisation").locator(".number")).to_have_text("40 %")
        expect(card).to_contain_text("How full it was meanwhile, this GPU does not measure")
        expect(card).to_contain_text("150 W mean")


def test_a_real_training_is_as_busy_as_its_profile_says(browser: Browser, public_folder: Path) -> None:
    name = "kineto/resnet50_loader_workers0.json.gz"
    truth = exact_sums(name)
    busy, idle = (int(truth[key]) / int(truth["gpu_span_ns"]) for key in ("compute_union_ns", "idle_ns"))
    with view(public_folder / name) as address, watched_page(browser, address) as page:
        page.goto(f"{address}#page=devices")
        card = page.get_by_role("region", name="GPU 0", exact=True)
        expect(card).to_contain_text("Tesla V100-DGXS-32GB")
        assert rungs(card)[0] == percent(busy)
        expect(card.get_by_role("img", name=f"idle {percent(idle)}")).to_be_visible()
        # 22.9 or more of the step waits for the loader: what holds this training up.
        expect(card).to_contain_text(re.compile(r"For \d+ % of its idle time it waits for data\."))


def test_a_run_without_gpus_says_how_they_are_recorded(page: Page, address: str) -> None:
    page.goto(f"{address}#page=devices")
    expect(page.get_by_role("main")).to_contain_text("No GPU did anything in this run")
    expect(page.get_by_role("main")).to_contain_text("strobe run train.py")
    expect(page.get_by_role("main")).to_contain_text("strobe doctor")


@pytest.mark.parametrize("width", [1280, 1920])
def test_nothing_is_wider_than_the_screen(browser: Browser, recorded: Ran, job: str, width: int) -> None:
    for address in (recorded.address, job):
        with watched_page(browser, address) as page:
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(f"{address}#page=devices")
            expect(page.locator(".ladder").first).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate("document.querySelector('.page').scrollWidth") <= width
            # All pages can be reached.
            box = page.get_by_role("button", name=re.compile("^GPUs")).bounding_box()
            assert box is not None
            assert box["x"] + box["width"] < width - 100


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_axe_finds_nothing_to_complain_about(browser: Browser, recorded: Ran, job: str, scheme: str) -> None:
    for address in (recorded.address, job):
        assert complaints(browser, f"{address}#page=devices", scheme, ".ladder") == []
