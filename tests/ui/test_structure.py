"""The pages Structure and Steps as a person uses them: every iteration beside the usual one, every step in a table."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

import strobe
from tests.ui.conftest import STROBE, view, watched_page
from tests.ui.driving import open_timeline, wait_until
from tests.ui.program import SLOW_STEP

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_cnn.py"
STEPS = 60
# The colours of a rectangle of a canvas, in CSS pixels, as [red, green, blue] each.
_PIXELS = """(canvas, [x, y, w, h]) => {
  const scale = canvas.width / canvas.clientWidth;
  const part = canvas.getContext("2d").getImageData(x * scale, y * scale, w * scale, h * scale);
  const out = [];
  for (let i = 0; i < part.data.length; i += 4) out.push([...part.data.slice(i, i + 3)]);
  return out;
}"""
# Around the cells, CSS pixels: structure/drawStack.ts.
LEFT, TOP, RIGHT, BOTTOM = 92, 93, 16, 6


def fields(page: Page) -> dict[str, str]:
    """What the address says."""
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).fragment).items()}


def open_structure(page: Page, address: str, more: str = "") -> Locator:
    """Open the page Structure and wait for the stack."""
    page.goto(f"{address}#page=structure{more}")
    wait_until(page, "performance.getEntriesByName('stack-picture').length > 0")
    return page.get_by_role("application", name=re.compile("^Iteration stack"))


def cell(stack: Locator, row: float, rows: int, column: float, columns: int) -> tuple[float, float]:
    """Where the middle of a cell is inside of the picture; columns are equally wide."""
    box = stack.bounding_box()
    assert box is not None
    height = (box["height"] - TOP - BOTTOM) / rows
    width = (box["width"] - LEFT - RIGHT) / columns
    return LEFT + (column + 0.5) * width, TOP + (row + 0.5) * height


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real training of PyTorch, recorded: one step in 37 waits for its data."""
    if find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    path = tmp_path_factory.mktemp("training") / "training.strobe"
    truth = path.with_suffix(".json")
    command = [
        STROBE,
        "run",
        "--quiet",
        "--keep",
        "all",
        "-o",
        str(path),
        str(EXAMPLE),
        f"--steps={STEPS}",
        "--stall-ms=400",
        f"--truth={truth}",
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return path


@pytest.fixture(scope="module")
def training_address(training: Path) -> Iterator[str]:
    with view(training) as address:
        yield address


def test_the_stack_shows_every_step_and_where_the_slow_one_waited(page: Page, address: str, trace: Path) -> None:
    stack = open_structure(page, address)
    with strobe.open(trace) as opened:
        made = opened.stack()
    assert made.names[0] == "fetch"
    columns = len(made.names)
    expect(stack).to_have_attribute("aria-label", re.compile(rf"60 rows of steps, {columns} columns.*{SLOW_STEP}"))
    canvas = stack.locator("canvas").first

    def colour(step: int) -> list[int]:
        x, y = cell(stack, step, 60, 0, columns)
        found: list[list[int]] = canvas.evaluate(_PIXELS, [x, y, 1, 1])
        return found[0]

    red, _, blue = colour(SLOW_STEP)
    assert red > blue + 60, "40 ms instead of 1 ms is orange"
    calm = [step for step in range(60) if max(colour(step)) - min(colour(step)) < 60]
    assert len(calm) > 30, "most of the others are nearly as usual"


def test_the_pointer_tells_step_position_and_how_it_compares(page: Page, address: str) -> None:
    stack = open_structure(page, address)
    count = len(page.evaluate("fetch('api/iteration?step=3').then(r => r.json())")["duration_ns"])
    stack.hover(position=dict(zip("xy", cell(stack, SLOW_STEP, 60, 0, count), strict=True)))  # type: ignore[arg-type]
    tip = page.get_by_role("tooltip")
    expect(tip).to_contain_text("fetch")
    expect(tip).to_contain_text("more than 8.0 × usual")
    expect(tip).to_contain_text(f"step {SLOW_STEP}")


def test_a_click_selects_the_step_on_every_page(page: Page, address: str) -> None:
    stack = open_structure(page, address)
    count = len(page.evaluate("fetch('api/iteration?step=3').then(r => r.json())")["duration_ns"])
    stack.click(position=dict(zip("xy", cell(stack, SLOW_STEP, 60, 0, count), strict=True)))  # type: ignore[arg-type]
    expect(page).to_have_url(re.compile(rf"step={SLOW_STEP}&region=fetch"))
    facts = page.get_by_role("complementary", name="Facts about the chosen step")
    expect(facts).to_contain_text(f"Step {SLOW_STEP}")
    first = facts.get_by_role("listitem").first
    expect(first).to_contain_text("fetch")
    expect(first).to_contain_text(re.compile(r"\+(39|[4-9]\d|\d{3})(\.\d)? ms"))
    facts.get_by_role("button", name="In the table").click()
    row = page.get_by_role("row", selected=True)
    expect(row).to_contain_text(str(SLOW_STEP))
    page.get_by_role("button", name="Show on the timeline").click()
    expect(page).to_have_url(re.compile(rf"page=timeline&time=.*step={SLOW_STEP}"))
    expect(page.get_by_role("navigation", name="Zoom")).to_contain_text(f"step {SLOW_STEP}")


def test_one_walks_through_the_stack_by_keys_alone(page: Page, address: str) -> None:
    stack = open_structure(page, address)
    stack.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    expect(page).to_have_url(re.compile(r"step=2&region=forward"))
    expect(page.locator(".spoken")).to_contain_text("step 2, forward")
    for _ in range(25):  # A loaded machine may make other steps slow as well.
        page.keyboard.press("n")
        if fields(page)["step"] == str(SLOW_STEP):
            break
    assert fields(page)["step"] == str(SLOW_STEP)
    page.keyboard.press("g")
    expect(page.get_by_role("button", name="gap before", exact=True)).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("step="))
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("page=timeline&time="))


def test_the_stack_is_ordered_and_a_reload_brings_it_back(page: Page, address: str) -> None:
    stack = open_structure(page, address)
    orders = page.get_by_role("group", name="by")
    orders.get_by_role("button", name="duration").click()
    expect(page).to_have_url(re.compile("stack=duration-duration-equal"))
    page.reload()
    expect(orders.get_by_role("button", name="duration")).to_have_attribute("aria-pressed", "true")
    stack.focus()
    page.keyboard.press("ArrowUp")
    longest = page.evaluate(
        "fetch('api/iterations?sort=duration').then(r => r.arrayBuffer()).then(b => {"
        " const n = new DataView(b).getUint32(4, true);"
        " return JSON.parse(new TextDecoder().decode(new Uint8Array(b, 8, n))).step[0]; })"
    )
    expect(page).to_have_url(re.compile(rf"step={longest}&"))


def test_the_loops_say_which_of_them_is_the_step_and_why(page: Page, address: str, trace: Path) -> None:
    open_structure(page, address)
    with strobe.open(trace) as opened:
        structure = opened.structure()
    loops = page.get_by_role("region", name="Loops")
    expect(loops).to_contain_text(f"{structure.confidence} confidence")
    expect(loops).to_contain_text(structure.reason[:40])
    expect(loops.get_by_role("button", pressed=True)).to_have_count(1)


def test_the_table_lists_filters_and_sorts(page: Page, address: str) -> None:
    page.goto(f"{address}#page=steps")
    table = page.get_by_role("grid", name="Steps")
    expect(table).to_have_attribute("aria-rowcount", "61")
    shown = table.get_by_role("row").count()
    assert shown < 61, "rows below the screen do not exist"
    table.get_by_role("button", name="duration").click()
    expect(table.get_by_role("columnheader", name="duration")).to_have_attribute("aria-sort", "descending")
    page.get_by_role("toolbar").get_by_role("button", name="outliers").click()
    expect(page).to_have_url(re.compile("slow=1"))
    expect(table.locator(f"#step-row-{SLOW_STEP}")).to_be_visible()
    page.reload()
    expect(page.get_by_role("toolbar").get_by_role("button", name="outliers")).to_have_attribute("aria-pressed", "true")


def test_keys_walk_through_the_table_and_open_a_step(page: Page, address: str) -> None:
    page.goto(f"{address}#page=steps")
    table = page.get_by_role("grid", name="Steps")
    table.focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    expect(page.get_by_role("row", selected=True)).to_contain_text("2")
    page.keyboard.press("End")
    expect(page).to_have_url(re.compile("step=59"))
    expect(page.get_by_role("row", selected=True)).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("page=timeline&time=.*step=59"))


def test_a_chosen_step_stands_beside_its_class(page: Page, address: str) -> None:
    page.goto(f"{address}#page=steps&step={SLOW_STEP}")
    card = page.get_by_role("region", name=f"Step {SLOW_STEP}")
    expect(card).to_contain_text("the mean of the other")
    expect(page.get_by_role("img", name=re.compile("^Breakdown of 60 steps"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Histogram of durations"))).to_be_visible()
    card.get_by_role("button", name="Among its iterations").click()
    expect(page.get_by_role("complementary", name="Facts about the chosen step")).to_contain_text(f"Step {SLOW_STEP}")


@pytest.fixture
def training_page(browser: Browser, training_address: str) -> Iterator[Page]:
    with watched_page(browser, training_address) as page:
        yield page


def test_a_real_training_is_stacked_up_by_its_operators(
    training_page: Page, training_address: str, training: Path
) -> None:
    page = training_page
    stack = open_structure(page, training_address)
    with strobe.open(training) as opened:
        made = opened.stack()
        slow = [r["step"] for r in made.outliers(least_share=2).to_pylist() if r["position"] == 0 and r["step"] > 0]
    waits_ns = [step["wait_ns"] for step in json.loads(training.with_suffix(".json").read_text())["steps"]]
    longest = waits_ns.index(max(waits_ns[1:]))  # one whose batch lies on a cold shard, unless the machine is busy
    assert longest in slow
    expect(stack).to_have_attribute("aria-label", re.compile(rf"{len(made)} rows of steps, {len(made.names)} columns"))
    page.goto(f"{training_address}#page=structure&step={longest}")
    facts = page.get_by_role("complementary", name="Facts about the chosen step")
    expect(facts.get_by_role("listitem").first).to_contain_text("next batch")
    page.goto(f"{training_address}#page=steps&step={longest}")
    expect(page.get_by_role("row", selected=True)).to_contain_text("data")


@pytest.fixture(scope="module")
def loopless_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The view of a program without a loop."""
    folder = tmp_path_factory.mktemp("loopless")
    (folder / "once.py").write_text("def once():\n    return sum(range(10))\n\nonce()\n")
    path = folder / "once.strobe"
    subprocess.run([STROBE, "run", "--quiet", "-o", str(path), str(folder / "once.py")], check=True)
    with view(path) as address:
        yield address


def test_a_program_without_a_loop_is_told_why_there_is_nothing(browser: Browser, loopless_address: str) -> None:
    with watched_page(browser, loopless_address) as page:
        says_why(page, loopless_address)


def says_why(page: Page, loopless_address: str) -> None:
    page.goto(f"{loopless_address}#page=structure")
    expect(page.get_by_role("region", name="Loops")).to_contain_text("No loop was found")
    expect(page.get_by_role("region", name="Iterations")).to_contain_text("No steps to stack up")
    page.goto(f"{loopless_address}#page=steps")
    expect(page.get_by_role("main")).to_contain_text("No steps were found")
    expect(page.get_by_role("main")).to_contain_text("strobe.step()")


def test_a_narrow_screen_keeps_all_parts(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 900, "height": 800})
    stack = open_structure(page, address)
    expect(page.get_by_role("heading", name="Loops")).to_be_visible()
    box = stack.bounding_box()
    assert box is not None
    assert box["width"] > 600
    page.get_by_role("button", name="Flow", exact=True).click()
    graph = page.get_by_role("region", name=re.compile("^Flow graph"))
    box = graph.bounding_box()
    assert box is not None
    assert box["width"] > 600
    page.close()


def test_a_group_of_columns_folds_to_one(page: Page, address: str) -> None:
    stack = open_structure(page, address)
    columns = int(re.search(r"(\d+) columns", stack.get_attribute("aria-label") or "")[1])  # type: ignore[index]
    heading = page.get_by_role("toolbar", name="Parts of the step").get_by_role("button").first
    expect(heading).to_have_attribute("aria-expanded", "true")
    heading.click()
    expect(page).to_have_url(re.compile(r"folded=\d+_\d+"))
    expect(heading).to_have_attribute("aria-expanded", "false")
    expect(stack).not_to_have_attribute("aria-label", re.compile(rf" {columns} columns"))
    page.reload()
    expect(heading).to_have_attribute("aria-expanded", "false")
    page.get_by_role("button", name="unfold all").click()
    expect(stack).to_have_attribute("aria-label", re.compile(rf" {columns} columns"))


def test_a_very_tall_screen_has_rows_for_as_many_steps_as_the_server_sends(browser: Browser, address: str) -> None:
    with watched_page(browser, address) as page:
        page.set_viewport_size({"width": 3840, "height": 2560})
        stack = open_structure(page, address)
        expect(stack).to_have_attribute("aria-label", re.compile("60 rows of steps"))


def test_a_chosen_region_stands_out_on_the_timeline(page: Page, address: str) -> None:
    stretch = "&time=100000000-160000000"
    bright = """canvas => {
      const { width, height } = canvas;
      const data = canvas.getContext("2d").getImageData(0, 0, width, height).data;
      let count = 0;
      for (let i = 0; i < data.length; i += 4) count += Math.max(data[i], data[i + 1], data[i + 2]) > 120;
      return count;
    }"""
    timeline = open_timeline(page, address, stretch)
    canvas = page.locator(".tracks-canvas")
    everything = canvas.evaluate(bright)
    page.goto(f"{address}#page=timeline{stretch}&region=forward")
    expect(page.get_by_title(re.compile("^forward stands out"))).to_be_visible()
    timeline.settle()
    assert 0 < canvas.evaluate(bright) < everything / 2, "only the chosen one keeps its colour"
    page.keyboard.press("]")
    timeline.settle()
    page.mouse.click(*timeline.at(0.5, timeline.row("main thread") + 2 * 17))
    page.get_by_role("complementary").get_by_role("button", name="In all iterations").click()
    expect(page).to_have_url(re.compile(r"page=structure.*step=\d+&region=train_step"))
    page.go_back()
    expect(page).to_have_url(re.compile(r"page=timeline.*span=.*region=forward"))
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("span="))
    expect(page).to_have_url(re.compile("region=forward"))
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("region="))


def test_a_key_pressed_while_the_page_is_being_changed_is_not_lost(page: Page, address: str) -> None:
    open_timeline(page, address, "&time=100000000-160000000&region=forward")
    page.keyboard.press("8")
    expect(page.get_by_role("heading", name="Loops")).to_be_visible()
    # At the moment at which the browser goes back: nothing of the timeline has been drawn by then.
    page.evaluate(
        """() => {
          const press = () => window.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", code: "Escape" }));
          window.addEventListener("popstate", press, { once: true });
          history.back();
        }"""
    )
    expect(page).to_have_url(re.compile("page=timeline&time=100000000-160000000$"))
    expect(page.locator(".tracks-canvas")).to_be_visible()


def test_a_chosen_level_counts_on_every_page(browser: Browser, training_address: str, training: Path) -> None:
    with strobe.open(training) as opened:
        inner = max(opened.structure().levels, key=lambda level: level.count)
        assert not inner.is_step
        count = f"{len(opened.steps(step_level=inner.marker)):,}".replace(",", " ")
    with watched_page(browser, training_address) as page:
        page.goto(f"{training_address}#page=overview&level={quote(inner.marker)}")
        facts = page.get_by_role("region", name="One step")
        expect(facts).to_contain_text(f"{count} steps, found with")
        page.get_by_role("contentinfo").get_by_role("button", name="a step is one of").click()
        expect(facts).to_contain_text(f"{STEPS} steps, found with")
        expect(page).not_to_have_url(re.compile("level="))


def test_the_data_pipeline_has_the_transforms_of_the_loader_as_a_tree(browser: Browser, training_address: str) -> None:
    with watched_page(browser, training_address) as page:
        page.goto(f"{training_address}#page=data")
        rows = page.get_by_role("list", name="Transforms").get_by_role("listitem")
        expect(rows.nth(0)).to_contain_text("fetch")
        expect(rows.nth(1)).to_contain_text("Images.__getitem__")
        expect(rows.nth(0)).to_contain_text("100 %")
        rows.nth(1).get_by_role("button").click()
        expect(page).to_have_url(re.compile("page=timeline.*find=Images.__getitem__"))


def test_a_node_of_the_graph_can_be_opened(browser: Browser, training_address: str) -> None:
    with watched_page(browser, training_address) as page:
        page.goto(f"{training_address}#page=structure&flow=1")
        graph = page.get_by_role("region", name=re.compile("^Flow graph"))
        inside = graph.get_by_role("button").filter(has_text=re.compile("aten::convolution"))
        conv = graph.get_by_role("button").filter(has_text="conv2d")
        expect(conv).to_have_attribute("aria-expanded", "false")
        expect(inside).to_have_count(0)
        conv.locator(".graph-open").click()
        expect(inside).not_to_have_count(0)
        expect(page).not_to_have_url(re.compile("region="))
        page.get_by_role("button", name=re.compile(r"events · .* nodes · .* × smaller")).click()
        expect(page.get_by_role("grid", name="flow graph")).to_have_attribute("aria-rowcount", str(STEPS + 1))


def test_folded_steps_are_said_to_be_statistics_only(page: Page, address: str) -> None:
    def fold(route: Route) -> None:
        """Pretend that the steps from 10 to 49 were folded while the program ran."""
        answer = route.fetch()
        steps = pa.ipc.open_stream(answer.body()).read_all()
        details = ["none" if 10 <= number < 50 else "all" for number in steps.column("step").to_pylist()]
        at = steps.schema.get_field_index("detail")
        folded = steps.set_column(at, steps.schema.field(at), pa.array(details, pa.string()))
        about = {**json.loads(steps.schema.metadata[b"about"]), "kept": 20}
        folded = folded.replace_schema_metadata({**steps.schema.metadata, b"about": json.dumps(about).encode()})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, folded.schema) as writer:
            writer.write_table(folded.combine_chunks())
        headers = {"content-type": "application/vnd.apache.arrow.stream"}
        route.fulfill(body=sink.getvalue().to_pybytes(), headers=headers)

    page.route(re.compile(r"/api/steps"), fold)
    page.goto(f"{address}#page=steps&step=20")
    expect(page.get_by_role("row", selected=True)).to_contain_text("statistics only")
    expect(page.get_by_role("region", name="Step 20")).to_contain_text("Kept as statistics only")
    page.get_by_role("toolbar").get_by_role("button", name=re.compile("kept in detail 20")).click()
    expect(page.get_by_role("grid", name="Steps")).to_have_attribute("aria-rowcount", "21")
    page.keyboard.press("2")
    expect(page.locator(".tracks-canvas")).to_be_visible()
    page.keyboard.press("0")  # it opens on typical steps
    expect(page.locator(".tracks-canvas")).to_have_attribute("aria-label", re.compile("40 of them statistics only"))
