"""The tests that NumPy and opt_einsum have for their einsum, with ours in its place.

    python tests/property/numpys_einsum.py                     # compiled
    python tests/property/numpys_einsum.py --target numpy      # evaluated: a quarter of a minute for NumPy's
    python tests/property/numpys_einsum.py --only numpy -v

They are those that are installed; nothing of them is kept here. What is known to fail has its reason below, and is to
fail; whatever else fails, fails here.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy
import numpy.testing
import pytest

import ilang

TESTS = {
    "numpy": ("numpy._core.tests.test_einsum",),
    "opt_einsum": (
        "opt_einsum.tests.test_contract",
        "opt_einsum.tests.test_edge_cases",
        "opt_einsum.tests.test_input",
    ),
}
"""By package: its tests of what einsum computes, and refuses."""

OBJECTS = "elements are no objects of Python"
OTHERS = "elements are f32, f64, i32, i64 and bool"
COMPLEX = "elements are no complex numbers"

KNOWN = {
    r"test_einsum_(object_errors|sums_object)|test_object_loop": OBJECTS,
    r"test_einsum_sums_(u?int8|u?int16|uint32|uint64|float16|longdouble)": OTHERS,
    r"test_different_paths\[[bBhHILQNPeg]\]": OTHERS,
    r"test_einsum_sums_c(float64|float128|longdouble)": COMPLEX,
    r"test_different_paths\[[FDG]\]": COMPLEX,
    r"test_contract_with_assumed_shapes\[(,,->-operands0|ab,->-operands1)\]": COMPLEX,
    r"test_einsum_0d_out": "a result of f64 is cast to integers where casting= says so, and only there",
    r"test_output_order": "a result that is computed is contiguous, whatever strides its operands have",
    r"test_path_type_input_invalid": "a path that leaves several tensors is completed",
    r"test_(large_int|hashable_object)_input_format": "axes in lists are numbers below 52, as NumPy's are",
}
"""Tests by what their names match, and why they fail."""


HOW = {"use_blas", "backend", "memory_limit"}
"""What opt_einsum can be told of how to compute."""


def einsum_on(target: str) -> Callable[..., Any]:
    """Our einsum, which computes on a target. Called without arrays it is a component, which NumPy has none of."""

    def einsum(*given: Any, **asked: Any) -> Any:
        if len(given) < 2:
            raise ValueError("no arrays")
        return ilang.einsum(*given, target=target, **asked)

    return einsum


def replace_numpys(target: str) -> None:
    """Put ours in the place of NumPy's. Messages are ours, so which words an error has is not asked."""

    def raises(kind: type[Exception], _words: str, *called: Any, **named: Any) -> Any:
        return numpy.testing.assert_raises(kind, *called, **named)

    vars(numpy)["einsum"] = einsum_on(target)
    vars(numpy.testing)["assert_raises_regex"] = raises


def replace_opt_einsums(target: str) -> None:
    """Put ours in the place of ``contract``, which is also told how to compute."""
    ours = einsum_on(target)

    def contract(*given: Any, **asked: Any) -> Any:
        named = {name: asked[name] for name in asked if name not in HOW}
        return ours(*given, **named)

    vars(importlib.import_module("opt_einsum"))["contract"] = contract


REPLACE = {"numpy": replace_numpys, "opt_einsum": replace_opt_einsums}


class Known:
    """A plugin of pytest: what is known to fail fails, and for nothing but that."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for names, reason in KNOWN.items():
                if re.fullmatch(names, item.name):
                    fails = pytest.mark.xfail(
                        reason=reason, raises=(ilang.Error, AssertionError), strict=True
                    )
                    item.add_marker(fails)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--target", default="c", choices=("c", "numpy"))
    parser.add_argument("--only", choices=tuple(TESTS))
    parser.add_argument("-v", "--verbose", action="store_true", help="list every test")
    options = parser.parse_args()
    status = 0
    for package in (options.only,) if options.only else TESTS:
        if importlib.util.find_spec(package) is None or not all(map(_is_there, TESTS[package])):
            print(f"{package}: it is not installed, or without its tests")
            continue
        REPLACE[package](options.target)
        told = ["-v"] if options.verbose else ["-q"]
        # Settings and fixtures of neither project: theirs need packages of their own.
        alone = ["-c", os.devnull, "--noconftest", "-p", "no:cacheprovider"]
        status |= pytest.main(
            [*told, "-rx", *alone, "--pyargs", *TESTS[package]], plugins=[Known()]
        )
    return int(status)


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


if __name__ == "__main__":
    sys.exit(main())
