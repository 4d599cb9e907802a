"""Restore `ilang/core`, `ilang/codegen` and `ilang/icli` where a checkout has lost these links.

All else is in pyproject.toml. A link that was unpacked from a zip archive, or checked out by git on Windows, is a file
with the text `../core`; a package of such a checkout would lack its modules.
"""

import shutil
from pathlib import Path

from setuptools import setup

for name in ("core", "codegen", "icli"):
    link = Path("ilang", name)
    if link.is_file():
        link.unlink()
        try:
            link.symlink_to(f"../{name}", target_is_directory=True)
        except OSError:  # Windows without developer mode
            shutil.copytree(name, link)

setup()
