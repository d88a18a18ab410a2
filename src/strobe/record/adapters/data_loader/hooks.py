"""PyTorch's DataLoader: what its worker processes do for each batch.

The wait for the next batch in the training process is a range that PyTorch emits itself
(`enumerate(DataLoader)#...__next__`, recorded by torch_ops).
Workers are forked children with files of their own; their fetch of a batch gets a span here.
"""

from __future__ import annotations

from strobe.native import core
from strobe.record.adapter import Hooks
from strobe.record.options.session_settings import Session
from strobe.record.program.import_hooks import after_import

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

TORCH, DATA = 2, 11  # model/kinds.py: paradigm, role


class DataLoader(Hooks):
    """Start and stop."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, Any]] = []
        self._on = False

    def available(self) -> str:
        """Always: without torch nothing happens."""
        return ""

    def start(self, settings: Session) -> None:
        """Wrap the fetchers as soon as torch's data package is there."""
        self._on = True
        after_import("torch.utils.data._utils.fetch", self._fetch_imported)

    def stop(self) -> None:
        """Give the fetchers their own methods back."""
        self._on = False
        while self._undo:
            owner, original = self._undo.pop()
            owner.fetch = original

    def _fetch_imported(self, module: ModuleType) -> None:
        for owner in (module._MapDatasetFetcher, module._IterableDatasetFetcher) if self._on else ():
            self._undo.append((owner, owner.fetch))
            owner.fetch = _spanned(owner.fetch)


def _spanned(fetch: Any) -> Any:
    region = core.region("DataLoader.fetch", TORCH, DATA)
    named = False

    def fetch_batch(self: Any, indices: Any) -> Any:
        nonlocal named
        core.enter(region)
        try:
            if not named:
                named = True
                _name_worker()
            return fetch(self, indices)
        finally:
            core.leave(region)

    return fetch_batch


def _name_worker() -> None:
    from torch.utils.data import get_worker_info  # type: ignore[import-not-found, unused-ignore]  # already imported

    worker = get_worker_info()
    if worker is not None:
        core.name_thread(f"DataLoader worker {worker.id}")
        core.name_process(f"DataLoader worker {worker.id}")


HOOKS = DataLoader()
