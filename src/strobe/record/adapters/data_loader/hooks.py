"""PyTorch's DataLoader: what its worker processes do for each batch.

The wait for the next batch in the training process is a range that PyTorch emits itself
(`enumerate(DataLoader)#...__next__`, recorded by torch_ops).
Workers are forked children with files of their own; their fetch of a batch gets a span here.
"""

from __future__ import annotations

from strobe.native import core
from strobe.record.adapter import Hooks, Replacements
from strobe.record.options.session_settings import Session
from strobe.record.program.import_hooks import after_import

TYPE_CHECKING = False  # typing itself is not imported into the measured program
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

TORCH, DATA = 2, 11  # model/kinds.py: paradigm, role


class _DataLoader(Hooks):
    def __init__(self) -> None:
        self._fetchers = Replacements()
        self._on = False

    def start(self, settings: Session) -> None:
        """Wrap the fetchers as soon as torch's data package is imported."""
        self._on = True
        after_import("torch.utils.data._utils.fetch", self._fetch_imported)

    def stop(self) -> None:
        self._on = False
        self._fetchers.undo()

    def _fetch_imported(self, module: ModuleType) -> None:
        for owner in (module._MapDatasetFetcher, module._IterableDatasetFetcher) if self._on else ():
            self._fetchers.put(owner, "fetch", _spanned(owner.fetch))


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


HOOKS = _DataLoader()
