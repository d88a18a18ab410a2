"""The exported HTML file, opened from the disk and printed; the page saves the same file, with its picture."""

import re
from pathlib import Path

import pypdf
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.ui.driving import complaints, open_timeline
from tests.unit.hand_made import make_trace, train_steps


def test_it_opens_from_the_disk(browser: Browser, tmp_path: Path) -> None:
    make_trace({"main": train_steps(20)}).export(tmp_path / "a.html")
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda message: troubles.append(message.text))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"file://{tmp_path / 'a.html'}")
    canvas = page.locator("#icicle")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    assert box["height"] > 40
    page.mouse.move(box["x"] + 100, box["y"] + 27)
    assert "20 calls" in page.locator("#details").inner_text()
    first = canvas.evaluate("canvas => canvas.toDataURL()")
    page.mouse.click(box["x"] + 100, box["y"] + 27)
    assert canvas.evaluate("canvas => canvas.toDataURL()") != first
    page.keyboard.press("Escape")
    assert canvas.evaluate("canvas => canvas.toDataURL()") == first
    page.fill("#find", "conv2d")
    assert canvas.evaluate("canvas => canvas.toDataURL()") != first
    assert "One step, mean of" in page.locator("body").inner_text()
    assert page.locator("#steps").count() == 1
    page.screenshot(path=str(tmp_path / "page.png"))
    page.close()
    assert troubles == []
    assert asked == [f"file://{tmp_path / 'a.html'}"]


def texts(page: Page, selector: str) -> list[str]:
    return [re.sub(r"\s+", " ", text).strip() for text in page.locator(selector).all_inner_texts()]


def test_a_report_has_the_figures_of_the_page_and_is_printed_whole(
    browser: Browser, page: Page, address: str, tmp_path: Path
) -> None:
    page.goto(f"{address}#page=overview")
    expect(page.locator(".findings")).to_be_visible()
    verdict = texts(page, ".verdict p")[0].removesuffix(" complete")
    findings = texts(page, ".findings .finding-head .bold:not(.gain)")[:3]
    assert findings
    open_timeline(page, address).settle()
    page.keyboard.press("x")
    dialog = page.get_by_role("dialog", name="Report: one HTML file to send or print")
    expect(dialog.get_by_role("checkbox", checked=True)).to_have_count(10)
    dialog.get_by_label("step trace").uncheck()
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Save").click()
    path = tmp_path / download.value.suggested_filename
    assert re.fullmatch(r"program_report_.*\.html", path.name)
    download.value.save_as(path)

    troubles: list[str] = []
    report = browser.new_page(viewport={"width": 1280, "height": 900})
    report.on("pageerror", lambda error: troubles.append(str(error)))
    report.on("console", lambda message: troubles.append(message.text))
    report.on(
        "request", lambda asked: troubles.append(asked.url) if not asked.url.startswith(("file:", "data:")) else 0
    )
    report.goto(f"file://{path}")
    assert verdict in texts(report, "h1")[0]
    listed = texts(report, "ol li")
    assert len(listed) == len(findings)
    for finding, item in zip(findings, listed, strict=True):
        assert item.startswith(finding.rstrip("."))
    expect(report.locator("svg text", has_text="main thread").first).to_be_visible()
    assert "Operator ranking" not in report.locator("body").inner_text()  # not wanted
    assert report.evaluate("document.documentElement.scrollWidth <= innerWidth")
    report.pdf(path=str(tmp_path / "report.pdf"), prefer_css_page_size=True)
    words = sorted({word for text in (verdict, *listed) for word in text.split()})
    report.close()
    assert troubles == []
    pages = [each.extract_text() for each in pypdf.PdfReader(tmp_path / "report.pdf").pages]
    printed = re.sub(r"\s+", "", "".join(pages).replace("\ufb01", "fi").replace("\ufb02", "fl"))
    assert [word for word in words if word not in printed] == []
    for name in ("fetch", "steps", "quality"):  # a function of program.py, and tables far below
        assert name in printed.lower()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_has_no_barriers(browser: Browser, tmp_path: Path, scheme: str) -> None:
    make_trace({"main": train_steps(20)}).export(tmp_path / "a.html")
    assert complaints(browser, f"file://{tmp_path / 'a.html'}", scheme, "h1") == []


def test_the_dialog_has_no_barriers_and_names_what_is_not_there(page: Page, address: str) -> None:
    page.goto(f"{address}#page=overview")
    page.get_by_role("button", name="report").click()
    picture = page.get_by_label("picture of the timeline")
    expect(picture).to_be_disabled()
    expect(page.get_by_role("dialog")).to_contain_text("open the page Timeline first")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
