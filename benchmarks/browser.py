"""What benchmarks of pages share: a Chromium whose memory is known, and the server of `strobe view`."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measure import STROBE
from playwright.sync_api import BrowserContext, Playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@contextmanager
def chromium(playwright: Playwright, profile: Path, width: int = 2000, height: int = 1000) -> Iterator[BrowserContext]:
    """A browser with a profile folder of its own, by which its processes are known."""
    shutil.rmtree(profile, ignore_errors=True)
    context = playwright.chromium.launch_persistent_context(
        str(profile),
        executable_path=shutil.which("chromium"),
        args=FLAGS,
        viewport={"width": width, "height": height},
    )
    try:
        yield context
    finally:
        context.close()


def pss_mib(pid: int) -> float:
    """Memory of a process: of what several share, its part (PSS). 0 once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def memory_mib(profile: Path) -> float:
    """Memory of all processes of the browser: what is shared counts once (PSS)."""
    return sum(map(pss_mib, _processes(profile)[0]))


def page_mib(profile: Path) -> float:
    """Memory of the process that shows the page: the largest of those that show pages (PSS)."""
    own, renderers = _processes(profile)
    return max(map(pss_mib, own & renderers), default=0.0)


def _processes(profile: Path) -> tuple[set[int], set[int]]:
    """The processes of the browser with this profile, and those of any browser that show pages."""
    parents: dict[int, int] = {}
    roots, renderers = set(), set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                parents[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
                words = (folder / "cmdline").read_text().replace("\0", " ").split()  # children have one word
                if f"--user-data-dir={profile}" in words:
                    roots.add(int(folder.name))
                if "--type=renderer" in words:
                    renderers.add(int(folder.name))
            except (OSError, ValueError):
                continue

    def belongs(pid: int) -> bool:
        while pid:
            if pid in roots:
                return True
            pid = parents.get(pid, 0)
        return False

    return set(filter(belongs, parents)), renderers


@contextmanager
def view(trace: Path) -> Iterator[tuple[str, float, int]]:
    """Serve a trace; give the address, the seconds until it could be opened, and the server's process."""
    begun = time.monotonic()
    command = [STROBE, "view", str(trace), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        try:
            yield address, time.monotonic() - begun, server.pid
        finally:
            server.terminate()


def load() -> str:
    """How busy the machine is. Figures mean little without it."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
