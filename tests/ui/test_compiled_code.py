"""The page Compiled code: a recorded program whose compilations and calls are known, and a profile made by hand."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import strobe
from tests.deep.kineto import call, kernel, operator, write
from tests.ui.conftest import STROBE, view, watched_page
from tests.ui.driving import complaints

# Two graphs, compiled once more for another size: the first has one kernel in C++, the second is a product.
PROGRAM = """
import torch


@torch.compile(dynamic=False)
def work(x):
    x = (x.sin() + 1).relu()  # line 7
    torch._dynamo.graph_break()
    return x @ x  # line 9


for step in range(6):
    work(torch.ones(16, 16) if step < 4 else torch.ones(32, 32))
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "program.py").write_text(PROGRAM)
    command = [STROBE, "run", "--quiet", "--keep", "all", "-o", "program.strobe", "program.py"]
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")}
    subprocess.run(command, cwd=folder, env=environment, check=True)
    return folder / "program.strobe"


@pytest.fixture(scope="module")
def address(recorded: Path) -> Iterator[str]:
    with view(recorded) as address:
        yield f"{address}#page=torch_compile"


@pytest.fixture
def compiled(browser: Browser, address: str) -> Iterator[Page]:
    with watched_page(browser, address) as page:
        page.goto(address)
        yield page


def rows(page: Page, *columns: str) -> list[tuple[str, ...]]:
    """The cells of these columns, in the order in which the grid has them."""
    grid = page.get_by_role("grid")
    expect(grid.get_by_role("columnheader", name=columns[-1], exact=True)).to_be_visible()
    heads = [text.strip() for text in grid.get_by_role("columnheader").all_inner_texts()]
    at = [heads.index(column) for column in columns]
    texts = [row.locator("td").all_inner_texts() for row in grid.locator(".grid-row").all()]
    # A name that may be cut has its end beside the rest.
    return [tuple(row[each].replace("\n", "") for each in at) for row in texts]


@pytest.mark.torch
def test_the_page_has_each_compilation_with_its_causes_and_its_part_of_the_run(compiled: Page, recorded: Path) -> None:
    expect(compiled.get_by_role("button", name="Compiled code")).to_have_attribute("aria-current", "page")
    listed = compiled.get_by_role("table", name="Compilations").get_by_role("row")
    expect(listed).to_have_count(1 + 4)
    found = {}
    for row in listed.all()[1:]:
        frame, function, when, *_, why = row.get_by_role("cell").all_inner_texts()
        found[frame] = (function, when, "size mismatch at index 0" in why, re.findall(r"program\.py:(\d+)\)", why))
    assert found == {
        "0/0": ("work", "first", False, ["8"]),
        "1/0": ("work", "first", False, []),
        "0/1": ("work", "again", True, ["8"]),
        "1/1": ("work", "again", True, []),
    }
    # The spans around compilations are another source than what PyTorch reports of each.
    with strobe.open(recorded) as trace:
        spans = trace.sql("select sum(duration_ns) as ns from spans where name = 'torch.compile'").to_arrow()
        share = spans.to_pylist()[0]["ns"] / trace.info.duration_ns
    bar = compiled.get_by_role("region", name="What compiling takes of the run").get_by_role("img")
    parts = [int(each) for each in re.findall(r"(\d+) %", bar.get_attribute("aria-label") or "")]
    assert 100 - parts[-1] == pytest.approx(100 * share, abs=3)


@pytest.mark.torch
def test_kernels_and_lines_have_the_time_of_their_spans_and_lead_to_them(compiled: Page, recorded: Path) -> None:
    with strobe.open(recorded) as trace:
        query = "select name, start_ns, duration_ns from spans where name like 'cpp_fused%' or name like 'extern_%'"
        spans = trace.sql(query).to_arrow().to_pylist()
    assert len(spans) == 12
    line_of = {"cpp_fused_add_relu_sin_0": "7", "extern_kernels.mm": "9"}
    assert sorted((kernel, lines[-1], calls, region) for kernel, lines, calls, region in rows(
        compiled, "kernel", "source lines", "calls", "region"
    )) == [
        (kernel, line, calls, region)
        for (kernel, line), first in zip(sorted(line_of.items()), (0, 1), strict=True)
        for calls, region in sorted([("4", f"{first}/0"), ("2", f"{first}/1")])
    ]  # fmt: skip
    expect(compiled.get_by_text("100 % of 12 calls of kernels are attributed to source lines.")).to_be_visible()
    compiled.get_by_role("button", name="line", exact=True).click()
    time_of = {
        line: sum(each["duration_ns"] for each in spans if each["name"] == name) for name, line in line_of.items()
    }
    most, least = sorted(time_of, key=lambda line: -time_of[line])
    shown = rows(compiled, "source line", "kernels", "calls", "share")
    assert [(line.rpartition(":")[2], *cells) for line, *cells in shown] == [
        (line, "2", "6", f"{100 * time_of[line] / sum(time_of.values()):.{0 if time else 1}f} %")
        for line, time in ((most, True), (least, time_of[least] >= 0.1 * sum(time_of.values())))
    ]
    compiled.get_by_role("gridcell", name=re.compile(":7$")).click()
    aside = compiled.get_by_role("complementary", name="Facts about what is chosen")
    expect(aside).to_contain_text("6 spans")
    aside.get_by_role("button", name="First").click()
    first = min(each["start_ns"] for each in spans if each["name"].startswith("cpp_fused"))
    expect(compiled).to_have_url(re.compile(rf"page=timeline.*span=\d+[^&]*{first}"))


@pytest.mark.torch
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible(browser: Browser, address: str, scheme: str) -> None:
    assert complaints(browser, address, scheme, ".compilations") == []


def test_a_profile_has_kernels_by_region_and_counts_those_without_one(browser: Browser, tmp_path: Path) -> None:
    region = operator("Torch-Compiled Region: 2/1", 0, 100, External_id=1)
    kernels = [
        kernel("gemm", 500, 60, correlation=1),
        kernel("triton_red_fused_sum_0", 600, 20, correlation=2),
        kernel("gemm", 700, 20, correlation=3),  # of code that was not compiled
    ]
    write(tmp_path / "trace.json", region, *(call(each, 2, correlation=i) for i, each in ((1, 10), (2, 300), (3, 310))),
          *kernels)  # fmt: skip
    with view(tmp_path / "trace.json") as address, watched_page(browser, address) as page:
        page.goto(f"{address}#page=torch_compile")
        assert rows(page, "kernel", "calls", "total", "share", "region") == [
            ("gemm", "1", "60.0 µs", "75 %", "2/1"),
            ("triton_red_fused_sum_0", "1", "20.0 µs", "25 %", ""),
        ]
        expect(page.get_by_text("50 % of 2 calls of kernels are attributed")).to_contain_text(
            "the others: 1 (nothing recorded shows the compiled region that launched it)"
        )
        expect(page.get_by_role("table", name="Compilations")).to_have_count(0)
        page.get_by_role("gridcell", name="gemm").click()
        expect(page.get_by_role("complementary")).to_contain_text("1 span, 60.0 µs")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("page=timeline.*span="))


def test_the_page_is_offered_only_where_a_run_has_compiled_code(browser: Browser, tmp_path: Path) -> None:
    write(tmp_path / "trace.json", operator("aten::mm", 0, 10))
    with view(tmp_path / "trace.json") as address, watched_page(browser, address) as page:
        page.goto(f"{address}#page=operators")
        expect(page.get_by_role("grid")).to_be_visible()
        expect(page.get_by_role("button", name="Compiled code")).to_have_count(0)
        page.goto(f"{address}#page=torch_compile")
        expect(page.get_by_role("main")).to_contain_text("No code that torch.compile made in this trace.")
