"""Loops that reductions share with what reads them, and those that they do not."""

import re

from ilang import i


def test_sums_of_windows_are_a_row_in_registers_before_their_reader() -> None:
    """One by one, in the loop of their reader, compilers make no vectors of 15 terms each."""
    loops = i("+b(t+u:15)~bt >> bt*bt~bt").loops((8, 1069), (8, 1055))
    assert "sum_tile[" in loops
    assert "registers" in loops.splitlines()[0]


LINEAR = """attention(q[b,n,d], k[b,n,d], v[b,n,d]) = {
  z = (bnd*bd~bnd >> +bnd~bn)(q, (+bnd~bd)(k))
  (bne/bn~bne)((bnd*bde~bnde >> +bnde~bne)(q, (bnd*bne~bnde >> +bnde~bde)(k, v)), z)
}"""


def test_what_lanes_read_across_is_stored_for_several_readers_too() -> None:
    """Inside of a shared loop no copy of it was transposed, and the products of a gradient had no vectors."""
    loops = i(LINEAR).grad().loops((16, 120, 24), (16, 120, 24), (16, 120, 24))
    tiles = re.findall(r"(\w+) f32\[\d+,\d+\] registers", loops)
    assert 5 <= len(tiles)
    for name in tiles:
        assert re.search(rf"tile {name} = 0[^\n]*\n +in vectors", loops), name


def test_short_rows_that_two_reduce_stay_in_the_loop_over_rows() -> None:
    """Lanes across rows would have taken the reduction out of it, and stored what its readers share."""
    loops = i("(id-jd~ijd >> (I & I) >> ijd*ijd~ijd >> +ijd~ij >> <ij~i)").grad()
    assert loops.loops((184, 8), (32, 8)).count("f32[184,32] shared") == 0
