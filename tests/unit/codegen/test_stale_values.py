"""What the way back reads has the values of the way forward: a parameter that is assigned between them is refused."""

from pathlib import Path

import pytest

from ilang import MeaningError, load

COMPONENTS = """
kernel = elementwise("f: a[i], b[i] -> a * b")
product = i*j~ij >> +ij~i
viewed = einx.multiply("(a b), (a b) -> a b", b=1)
total = +i~.
op mixed(x, y) = prim ~logic:"." { v =: v1 * v2 } grad { g1 =+ g * v2; g2 =+ g * v1 }
"""
READ = [
    '"w" 3 *. "v" 3 *. x',
    'kernel("w" 3, "v" 3 +. x)',
    'product("w" 3, "v" 3 +. x)',
    'viewed("w" 3, "v" 3 +. x)',
    'mixed("w" 3, "v" 3 +. x)',
    'exp("w" 3) *. x',
    'max("w" 3, x)',
]
NOT_READ = [
    '"w" 3 +. x',
    'total("w" 3) + x',
    'kernel("w" 3, x)',
    '"w" 3 *. x',
    'x -. stop_gradient("v" 3 *. "w" 3) +. "w" 3',
]


def session(tmp_path: Path, statements: str) -> None:
    path = tmp_path / "m.i"
    path.write_text(f"{COMPONENTS}cd run(x) {{ {statements}; return y }}\n")
    load(path).session("run", {"x": "|3"})


@pytest.mark.parametrize("expression", READ)
def test_a_parameter_that_the_way_back_reads_is_not_assigned_before(
    expression: str, tmp_path: Path
) -> None:
    with pytest.raises(MeaningError) as caught:
        session(tmp_path, f"y = {expression}; forward(y); w =+ 1; backprop(y)")
    assert caught.value.code == "E0284"
    session(tmp_path, f"y = {expression}; backprop(y); w =+ 1")


@pytest.mark.parametrize("expression", NOT_READ)
def test_a_parameter_that_the_way_back_does_not_read_may_be(
    expression: str, tmp_path: Path
) -> None:
    session(tmp_path, f"y = {expression}; forward(y); w =+ 1; backprop(y)")
