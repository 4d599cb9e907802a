"""The examples of docs/calling.md that need more than C run where their tools are, and print what they show."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

from tests.transcripts import OUTPUT, ROOT, pasted_steps, prepare, replay_steps

PAGE = (ROOT / "docs" / "calling.md").read_text("utf-8")
TOOLS = {
    "Rust": shutil.which("rustc") and shutil.which("cc"),
    "WebAssembly": importlib.util.find_spec("ziglang") and shutil.which("node"),
}


@pytest.mark.parametrize("title", TOOLS)
def test_an_example_prints_what_it_shows(title: str, tmp_path: Path) -> None:
    if not TOOLS[title]:
        pytest.skip(f"no tools for {title}")
    (program,) = re.findall(r"^echo '(.*)' > mm\.i$", PAGE, re.MULTILINE)
    section = re.split(rf"^## {title}\n", PAGE, flags=re.MULTILINE)[1]
    match = re.search(r"^```sh\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    assert match
    folder, environment = prepare(tmp_path)
    (folder / "mm.i").write_text(f"{program}\n", encoding="utf-8")
    assert replay_steps(pasted_steps(match[1]), folder, environment, OUTPUT) == match[1]
