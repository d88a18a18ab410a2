"""The page of ranks: waits and efficiencies that were worked out by hand, and the way to them on the timeline."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.ranks import wait_archives
from tests.ranks.gpu_wait_cases import GPU_CASES
from tests.ranks.test_gpu_waits import opened_job
from tests.ranks.test_rank_pictures import LATE_STEP, late_rank
from tests.ranks.wait_case import Case, mpi_collective
from tests.ranks.wait_cases_of_collectives import CASES_OF_COLLECTIVES
from tests.ui.conftest import view, watched_page
from tests.ui.driving import complaints

MANY = 70


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Rank 0 waits 1800 ns, rank 1 1400 and rank 2 1180, in six states. The trace begins at 100 ns of the case."""
    case = next(case for case in CASES_OF_COLLECTIVES if case.name == "program_of_three_ranks")
    with view(wait_archives.write(case, tmp_path_factory.mktemp("ranks") / "three")) as address:
        yield address


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Rank r comes to a barrier at 100 r ns: the last one is awaited by all others."""
    ranks = {rank: mpi_collective(100 * rank, 10_000, "MPI_Barrier") for rank in range(MANY)}
    case = Case("late_ranks", "Each rank is later than the one before.", ranks, [])
    with view(wait_archives.write(case, tmp_path_factory.mktemp("ranks") / "many")) as address:
        yield address


@pytest.fixture
def ranks(browser: Browser, three: str) -> Iterator[Page]:
    with watched_page(browser, three) as page:
        page.goto(f"{three}#page=ranks")
        expect(page.get_by_role("region", name="What ranks waited for")).to_be_visible()
        yield page


def tiles(page: Page, name: str) -> Locator:
    return page.get_by_role("application", name=name)


def hover(page: Page, column: int, row: int, of: int = 3) -> Locator:
    """The tooltip of a pair: the awaited rank is the column, the waiting one the row."""
    picture = tiles(page, "for each other")
    box = picture.bounding_box()
    assert box is not None
    picture.hover(position={"x": box["width"] * (column + 0.5) / of, "y": box["height"] * (row + 0.5) / of})
    return page.get_by_role("tooltip")


def test_waits_of_each_rank_are_those_worked_out_by_hand(ranks: Page) -> None:
    expect(ranks.get_by_role("main")).to_contain_text("Ranks waited 4.35 us for one another")
    expect(ranks.get_by_role("main")).to_contain_text("All figures are of the whole run.")
    bars = ranks.get_by_role("figure", name="Waits of each rank").get_by_role("button")
    assert {bar.get_attribute("aria-label") for bar in bars.all()} == {
        "rank 0, wait at barrier: 1.00 µs",
        "rank 0, early reduce: 800 ns",
        "rank 1, late broadcast: 900 ns",
        "rank 1, late receiver: 500 ns",
        "rank 2, late sender: 700 ns",
        "rank 2, late broadcast: 400 ns",
        "rank 2, wait at barrier: 50 ns",
        "rank 2, barrier completion: 30 ns",
    }
    heights = {bar.get_attribute("aria-label"): (bar.bounding_box() or {})["height"] for bar in bars.all()}
    assert heights["rank 0, wait at barrier: 1.00 µs"] == pytest.approx(
        2 * heights["rank 1, late receiver: 500 ns"], abs=1
    )
    states = ranks.get_by_role("list", name="Waits by state").get_by_role("listitem")
    expect(states.first).to_have_text(re.compile("late broadcast *1.30 µs *longest 900 ns, rank 1"))


def test_pairs_have_their_waits(ranks: Page) -> None:
    tooltip = hover(ranks, column=1, row=0)
    expect(tooltip).to_contain_text("rank 0 waited for rank 1: 1.80 µs")
    expect(tooltip).to_contain_text("wait at barrier: 1.00 µs")
    expect(tooltip).to_contain_text("early reduce: 800 ns")
    expect(hover(ranks, column=0, row=1)).to_contain_text("rank 1 waited for rank 0: 900 ns")
    expect(hover(ranks, column=0, row=0)).to_contain_text("rank 0 waited for rank 0: 0 ns")


def test_a_wait_leads_to_itself_on_the_timeline(ranks: Page) -> None:
    """The receive of rank 2 at 1500 waits for 700 ns; rank 0 is longest in the barrier, from 2000 on, for rank 1."""
    ranks.get_by_role("button", name="rank 2, late sender").click()
    expect(ranks).to_have_url(re.compile("page=timeline.*&range=1400-2100"))
    expect(ranks.locator(".gutter").first).to_contain_text("rank 2")
    ranks.go_back()
    hover(ranks, column=1, row=0)
    tiles(ranks, "for each other").click(position={"x": 200, "y": 50})
    expect(ranks).to_have_url(re.compile("page=timeline.*&range=1900-2900"))
    for rank in ("rank 0", "rank 1"):
        expect(ranks.locator(".gutter").first).to_contain_text(rank)


def test_efficiencies_are_those_of_the_chosen_model(ranks: Page) -> None:
    """Ranks compute for 100, 1280 and 1000 ns and communicate for 1950, 1670 and 1480; rank 1 lasts longest, 2950."""
    factors = ranks.get_by_role("list", name="Factors").get_by_role("listitem")

    def value(name: str) -> str:
        return factors.filter(has_text=re.compile(rf"^{name}(\d|not)")).locator(".number").inner_text()

    expect(factors.first).to_contain_text("parallel efficiency")
    assert value("parallel efficiency") == "0.27"  # 2380 / (3 * 2950)
    assert value("load balance") == "0.62"  # 2380 / 3 / 1280
    assert value("communication efficiency") == "0.43"  # 1280 / 2950
    # Without transfers rank 1 passes the broadcast at 1000, its second send at 2670 (rank 2 asks for it after 130 and
    # 290, the first message at 2130, and 540), and comes to the barrier at 2770: 2670 after its beginning.
    assert value("transfer efficiency") == "0.91"  # 2670 / 2950
    assert value("serialisation efficiency") == "0.48"  # 1280 / 2670
    ranks.get_by_role("button", name="talp").click()
    expect(factors.filter(has_text="MPI parallel efficiency")).to_contain_text("0.42")  # (2950 - 1700) / 2950
    assert value("MPI communication efficiency") == "0.50"  # (2950 - 1480) / 2950
    ranks.reload()
    expect(factors.filter(has_text="MPI parallel efficiency")).to_be_visible()


def test_many_ranks_are_tiles_that_keys_walk(browser: Browser, many: str) -> None:
    with watched_page(browser, many) as page:
        page.goto(f"{many}#page=ranks")
        picture = tiles(page, f"Waits of {MANY} ranks by state")
        picture.focus()
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("tooltip")).to_contain_text("rank 0, wait at barrier: 6.90 µs")
        shades = page.evaluate(
            """(() => {
                const canvas = document.querySelector("[aria-label$='by state'] canvas");
                const bytes = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
                return [0, canvas.width / 2, canvas.width - 1].map((x) => bytes[4 * x] + bytes[4 * x + 1]);
            })()"""
        )
        assert shades[0] > shades[1] > shades[2]
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("tooltip")).to_contain_text("rank 1, wait at barrier: 6.80 µs")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("page=timeline.*&range=100-6900"))


def test_ranks_that_never_waited_have_a_sentence(browser: Browser, tmp_path: Path) -> None:
    ranks = {rank: mpi_collective(100, 200, "MPI_Barrier") for rank in range(MANY)}
    case = Case("together", "All come to a barrier and leave it at once.", ranks, [])
    with view(wait_archives.write(case, tmp_path / "together")) as address, watched_page(browser, address) as page:
        page.goto(f"{address}#page=ranks")
        expect(page.get_by_role("region", name="What ranks waited for")).to_contain_text("No rank is known to have")
        expect(page.get_by_role("region", name="Who waited for whom")).to_contain_text("0 ns")


def test_steps_of_all_ranks_lead_to_the_timeline_and_parts_follow_its_window(browser: Browser, tmp_path: Path) -> None:
    """In step 7 rank 1 computes for 9000 ns, 3000 more than the others, which wait for it."""
    with view(wait_archives.write(late_rank(), tmp_path / "late")) as address, watched_page(browser, address) as page:
        page.goto(f"{address}#page=ranks")
        page.get_by_label("shown").select_option("computation")
        steps = tiles(page, "steps of ranks")
        steps.focus()
        # The first key enters the picture.
        for key in ("ArrowRight", *["ArrowRight"] * LATE_STEP, "ArrowDown"):
            page.keyboard.press(key)
        expect(page.get_by_role("tooltip")).to_have_text(f"rank 1, step {LATE_STEP}: 9.00 µs")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(f"page=timeline.*&step={LATE_STEP}"))
        expect(page.locator(".gutter").first).to_contain_text("rank 1")
        page.get_by_role("button", name="Ranks").click()
        main = page.get_by_role("main")
        expect(main).to_contain_text("Waits and steps are of what the timeline shows")
        expect(main).to_contain_text("Ranks waited 6.00 us for one another")
        expect(page.get_by_role("region", name="Efficiency")).to_contain_text("of the whole run")
        expect(tiles(page, "steps of ranks")).to_have_attribute("aria-label", re.compile("^[1-3] steps"))
        page.get_by_role("button", name="Whole run").click()
        expect(main).to_contain_text("All figures are of the whole run.")
        expect(tiles(page, "steps of ranks")).to_have_attribute("aria-label", re.compile("^(39|40) steps"))


def test_gpus_have_their_waits_and_causes(browser: Browser, tmp_path: Path) -> None:
    """Rank 1 loads 40 us longer than rank 0, whose GPU waits for it, and whose host waits for its GPU."""
    case = next(case for case in GPU_CASES if case.name == "late_rank_of_two")
    with view(opened_job(case.ranks, tmp_path).path) as address, watched_page(browser, address) as page:
        page.goto(f"{address}#page=ranks")
        bars = page.get_by_role("figure", name="Waits of each rank").get_by_role("button")
        expect(bars.first).to_be_visible()
        assert {bar.get_attribute("aria-label") for bar in bars.all()} >= {
            "rank 0, late GPU: 58.0 µs",
            "rank 0, wait at nxn: 40.0 µs",
            "rank 0, late host: 20.0 µs",
            "rank 1, late host: 60.0 µs",
            "rank 1, late GPU: 18.0 µs",
        }
        tooltip = hover(page, column=0, row=0, of=2)
        expect(tooltip).to_contain_text("rank 0 waited for rank 0: 78.0 µs")
        expect(tooltip).to_contain_text("late host: 20.0 µs")
        expect(hover(page, column=1, row=0, of=2)).to_contain_text("rank 0 waited for rank 1: 40.0 µs")
        late = page.get_by_role("region", name="What made ranks late").get_by_role("listitem")
        expect(late).to_have_text(re.compile("rank 1, load *40.0 µs$"))
        gpus = page.get_by_role("region", name="What made GPUs and their hosts wait").get_by_role("listitem")
        expect(gpus.first).to_have_text(re.compile("rank 1, load *100 µs *40.0 µs passed on"))
        page.get_by_role("button", name="rank 1, late host").click()
        expect(page).to_have_url(re.compile("page=timeline.*&range=10000-70000"))


def test_a_run_without_gpus_has_no_causes_of_their_waits(ranks: Page) -> None:
    expect(ranks.get_by_role("region", name="What made ranks late")).to_be_visible()
    expect(ranks.get_by_role("region", name="What made GPUs")).to_have_count(0)


def test_a_run_without_ranks_does_not_offer_the_page(page: Page, ranks: Page, address: str) -> None:
    expect(ranks.get_by_role("navigation", name="Pages")).to_contain_text("Ranks")
    page.goto(f"{address}#page=ranks")
    expect(page.get_by_role("main")).to_contain_text("fewer than two ranks")
    expect(page.get_by_role("navigation", name="Pages")).not_to_contain_text("Ranks")


@pytest.mark.parametrize("width", [1280, 1920])
def test_nothing_is_wider_than_the_screen(browser: Browser, three: str, many: str, width: int) -> None:
    for address in (three, many):
        with watched_page(browser, address) as page:
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(f"{address}#page=ranks")
            expect(page.locator(".factors")).to_be_visible()
            assert page.evaluate("document.querySelector('.page').scrollWidth") <= width
            # All pages can be reached.
            box = page.get_by_role("button", name="Ranks").bounding_box()
            assert box is not None
            assert box["x"] + box["width"] < width - 100


def test_sums_come_first_and_wait_for_no_analysis(browser: Browser, many: str) -> None:
    """Until they are there, nothing is asked that takes the server long, and they have no bar of each rank."""
    asked: list[str] = []
    held: list[Route] = []
    with watched_page(browser, many) as page:
        page.on("request", lambda request: asked.append(request.url.partition("/api/")[2]))
        page.route("**/api/window/bars?*", lambda route: held.append(route))
        with page.expect_request("**/api/window/bars?*"):
            page.goto(f"{many}#page=ranks")
        expect(page.get_by_role("main")).to_contain_text("Summing up")
        page.evaluate("new Promise((done) => requestIdleCallback(done))")
        assert not [each for each in asked if each.startswith(("ranks/", "table/"))]
        with page.expect_response("**/api/window/bars?*") as answer:
            held.pop().continue_()
        assert answer.value.json()["bars"] == []
        expect(page.locator(".factors")).to_be_visible()
        expect(tiles(page, "for each other")).to_be_visible()
        expect(page.get_by_role("list", name="Causes of waits")).to_be_visible()


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_axe_finds_nothing_to_complain_about(browser: Browser, three: str, many: str, scheme: str) -> None:
    for address in (three, many):
        assert complaints(browser, f"{address}#page=ranks", scheme, ".factors") == []


def test_what_made_a_rank_late_is_named_and_leads_to_the_wait(browser: Browser, many: str) -> None:
    with watched_page(browser, many) as page:
        page.goto(f"{many}#page=ranks")
        cause = page.get_by_role("list", name="Causes of waits").get_by_role("listitem")
        expect(cause).to_have_count(1)
        # The last one makes all others wait: for 100 ns * (1 + 2 + ... + 69).
        expect(cause).to_contain_text("rank 69, computation before MPI_Barrier")
        expect(cause).to_contain_text("242 µs")
        cause.get_by_role("button").click()
        expect(page.locator(".gutter").first).to_contain_text("rank 69")
