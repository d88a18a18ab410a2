"""What the tests of the recorder share."""

from pathlib import Path

import pytest

from tests.record.workshop import Workshop


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    """An empty folder for one program."""
    return Workshop(tmp_path)
