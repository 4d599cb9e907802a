"""Every transcript and every bash block of the documentation does what it shows."""

from pathlib import Path

import pytest

from tests.rewritten import settle
from tests.transcripts import ROOT, documents, replay


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_transcript(document: Path, update: bool) -> None:
    settle(document, replay(document), update)
