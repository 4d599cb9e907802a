"""Loops that reductions share with what reads them, and those that they do not."""

from ilang import i


def test_sums_of_windows_are_a_row_in_registers_before_their_reader() -> None:
    """One by one, in the loop of their reader, compilers make no vectors of 15 terms each."""
    loops = i("+b(t+u:15)~bt >> bt*bt~bt").loops((8, 1069), (8, 1055))
    assert "sum_tile[" in loops
    assert "registers" in loops.splitlines()[0]
