"""What a project says of definitions that are part of others."""

from pathlib import Path

import pytest

from tests.unit.icli.front import i

ATTENTION = """\
scores  = ik*jk~ijk >> +ijk~ij
shift   = (I & >ij~i) >> ij-i~ij
norm    = (I & +ij~i) >> ij/i~ij
softmax = shift >> norm
mix     = ij*jk~ijk >> +ijk~ik
attention(q[m,d], k[n,d], v[n,d]) = scores >> softmax >> mix
row_norm = norm
"""
INLINED = "scores, shift, norm, softmax, mix"
MODEL = """\
use nn
op net(x) = linear(x; 2)
op twice(x) = net(x) *. 2
cd step(x[b|3], t: i64[b|]) { loss = cross_entropy_at(twice(x), t); return loss }
"""


@pytest.mark.parametrize("options", [(), ("--prefix", "none"), ("--target", "cuda")])
def test_projects_name_what_is_used_through_others(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "att.i").write_text(ATTENTION)
    done = i("build", "att.i", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    begins = "" if "none" in options else "att_"
    said = f"the functions are {begins}attention, {begins}row_norm; {INLINED} are part of what uses"
    assert said in done.stderr
    assert f"as part of what uses them: {INLINED}." in (tmp_path / "out/att.h").read_text()
    listed = INLINED.replace(", ", "`, `")
    assert f"as part of what uses them: `{listed}`." in (tmp_path / "out/README.md").read_text()


def test_one_definition_names_what_it_uses_alone(tmp_path: Path) -> None:
    (tmp_path / "att.i").write_text(ATTENTION)
    done = i("build", "att.i", "--def", "softmax", cwd=tmp_path)
    assert "the function is att_softmax; shift, norm are part of it" in done.stderr
    assert "part of" not in i("build", "att.i", "--def", "mix", "-o", "b", cwd=tmp_path).stderr


def test_sessions_name_what_they_use(tmp_path: Path) -> None:
    """An input whose head writes no output axis was read as `b|()`, and refused."""
    (tmp_path / "m.i").write_text(MODEL)
    done = i("build", "m.i", "--shape", "x=5|3,t=5|()", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the function is m_step; net, twice are part of it" in done.stderr
    assert i("build", "m.i", cwd=tmp_path).returncode == 0, "a mean is over the batch of a run"
