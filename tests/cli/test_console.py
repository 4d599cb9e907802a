"""Every transcript and every bash block of the documentation does what it shows."""

from pathlib import Path

import pytest

from tests.rewritten import settle
from tests.transcripts import ROOT, documents, replay

COMPILING = ("docs/cuda.md", "docs/training.md")
"""Pages that build and test whole projects."""

DOCUMENTS = [
    pytest.param(path, id=name, marks=pytest.mark.deep if name in COMPILING else ())
    for path in documents()
    for name in [str(path.relative_to(ROOT))]
]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_transcript(document: Path, update: bool) -> None:
    settle(document, replay(document), update)
