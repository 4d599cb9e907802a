"""The tidy layout: what changes, what stays, and that doing it twice changes nothing."""

from pathlib import Path

import pytest

from ilang.core.notation.files.layout import format_module
from ilang.core.source import Source
from tests.unit.notation.test_module import ATTENTION

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
LAID_OUT = """\
f(x) = {  # one
  a = g(x, 2);  # two

  # three
  b,
      _ =
      h(a,

      x)
  b, a,
      x
}  #four
"""
DEFINED = "g = i+.~i\nh = i+i~i & i-i~i\n"


def tidy(text: str) -> str:
    if "{" in text and not text.startswith("cd"):
        return _tidy(f"{DEFINED}{text}").removeprefix(DEFINED)
    return _tidy(text)


def _tidy(text: str) -> str:
    once = format_module(Source("m.i", text))
    assert format_module(Source("m.i", once)) == once
    return once


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a=+ij~i>>-i~i", "a = +ij~i >> -i~i\n"),
        (" a  =  ik * kj ~ ijk\t\n", "a = ik*kj~ijk\n"),
        ("a = ( I&I )>>i+i~i", "a = (I & I) >> i+i~i\n"),
        ("a = ~ ( I|I )|~I", "a = ~(I | I) | ~I\n"),
        ("a = + ij~i|i:2 , j : 3|i i'0j j'", "a = +ij~i | i:2,j:3 | i i' 0 j j'\n"),
        ("a = i~i||0i|i :v ,0:s", "a = i~i || 0 i | i:v,0:s\n"),
        ("a = i~i|i:2|", "a = i~i | i:2 |\n"),
        ("a = (i~i||)|i~i|||i~i", "a = (i~i ||) | i~i | ||i~i\n"),
        ("a = i~i|||i:v", "a = i~i || | i:v\n"),
        ("a = i ( 'x >> xy ~ xy' )&2", "a = i('x>>xy~xy') & 2\n"),
        ("f( q:f64[ m,3 ],k )=I", "f(q: f64[m,3], k) = I\n"),
        ("a = I#one\n#two\n\n\n\n  #three\nb = I\n\n\n", "a = I  #one\n#two\n\n#three\nb = I\n"),
        ("a = I >> # why\n# because\n\n I", "a = I >>  # why\n    # because\n\n    I\n"),
        ("a = I\n>> I\n\t& I", "a = I\n    >> I\n    & I\n"),
        ("a = (\nI\n)", "a = (\n    I\n    )\n"),
        ("f(x)={a=g( x,-2 );b,_=(  h)(a,x);b}", "f(x) = { a = g(x, -2); b, _ = (h)(a, x); b }\n"),
        (
            "f(x) = {# one\na=g(x,2) ;# two\n\n\n# three\n    b,\n_=\nh(a,\n\nx)\nb, a,\nx\n  }#four",
            LAID_OUT,
        ),
        ("\ufeff\n\n# x\r\na = I\r\n", "# x\na = I\n"),
        ("\ufeffa = I", "a = I\n"),
        ("# é “x” \na = I", "# é “x”\na = I\n"),
        ("op f( t : i64[ b ,s|] )= t\n", "op f(t: i64[b, s|]) = t\n"),
        (
            'cd f(c; k){if k>0{c=+1}else{c=-1}if k>1{"d"=:c}"e"=:c}',
            'cd f(c; k) { if k > 0 { c =+ 1 } else { c =- 1 } if k > 1 { "d" =: c } "e" =: c }\n',
        ),
    ],
)
def test_layout(text: str, wanted: str) -> None:
    assert tidy(text) == wanted


def test_attention_loses_only_its_columns() -> None:
    assert tidy(ATTENTION) == ATTENTION.replace("shift  =", "shift =").replace(
        "exp    =", "exp ="
    ).replace("norm   =", "norm =").replace("mix    =", "mix =")


@pytest.mark.parametrize("path", sorted(SAMPLES.rglob("*.i")), ids=lambda path: path.name)
def test_samples_are_laid_out(path: Path) -> None:
    text = path.read_text("utf-8")
    assert format_module(Source(path.name, text)) == text
