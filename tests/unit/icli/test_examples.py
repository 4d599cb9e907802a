"""``i test``: examples in the comments of files."""

import json
from pathlib import Path

import pytest

from tests.unit.icli.front import i

SUMS = "# in x = [[1, 2], [3, 4]]\n# out = [3, 7]\nsums(x[m,n]) = +ij~i\n"
TARGETS = [("--target", "numpy"), (), ("--target", "cuda", "--emulate")]
pytestmark = pytest.mark.usefixtures("compiled_quickly")


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, "utf-8")


@pytest.mark.parametrize("target", TARGETS)
def test_an_example_holds_or_its_first_difference_is_named(
    target: tuple[str, ...], tmp_path: Path
) -> None:
    write(tmp_path, "good.i", SUMS)
    write(tmp_path, "bad.i", SUMS.replace("7", "8"))
    done = i("test", "good.i", "bad.i", *target, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "good.i ok: 1 example of sums\n")
    assert (
        "error[E0771]: out[1] is 7.0, and the example writes 8.0\n --> bad.i:2:9\n" in done.stderr
    )


def test_folders_files_without_examples_and_broken_ones(tmp_path: Path) -> None:
    write(tmp_path, "d/a.i", SUMS)
    write(tmp_path, "d/e/b.i", "b = +ij~i\n")
    write(tmp_path, "d/c.i", "c = ij~\n")
    done = i("test", "d", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (
        1,
        "d/a.i ok: 1 example of sums\nd/e/b.i has no example\n",
    )
    assert "an example is `# in x = [1, 2]`, then `# out = 3`" in done.stderr
    assert "E0103" in done.stderr
    told = json.loads(i("test", "d", "--json", cwd=tmp_path).stdout)
    assert not told["ok"]
    assert [(each["file"], each["ok"], each["examples"]) for each in told["files"]] == [
        ("d/a.i", True, 1),
        ("d/c.i", False, 0),
        ("d/e/b.i", True, 0),
    ]
    assert i("test", "no.i", cwd=tmp_path).returncode == 1
    assert i("test").returncode == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            SUMS.replace("[3, 7]", "[3, 7, 1]"),
            "out has shape 2, and the example writes what has shape 3",
        ),
        (
            SUMS.replace("+ij~i", "+ij~."),
            "out is one number, and the example writes what has shape 2",
        ),
        (
            SUMS.replace("[3, 7]", "[8, 8]"),
            "out[0] is 3.0, and the example writes 8.0; 2 of 2 elements",
        ),
        (SUMS.replace("[3, 7]", ""), "an array is missing after `=`\n --> m.i:2:7"),
        (SUMS.replace("= [[1, 2], [3, 4]]", "[1, [2]]"), "m.i:1:12"),
        (SUMS.replace("[3, 7]", "f64:[3, 7]"), "is of type f32, and the example writes f64"),
        (SUMS.replace("[3, 7]", "[3, 7"), "m.i:2:14"),
        (SUMS.replace("[[1, 2], [3, 4]]", "[[1, 2], [3]]"), "m.i:1:21"),
        (SUMS.replace("[[1, 2], [3, 4]]", "[1, 2]"), "m.i:1:10"),
        (SUMS.replace("# out", "# out = [3, 7]\n# out"), "1 result"),
        (SUMS.replace("7]", "7.5] within 0.01"), "out[1] is 7.0, and the example writes 7.5"),
        (SUMS.replace("7]", "7] within much"), "`much` is no difference"),
        (SUMS.replace("# out", "# out out"), "a result has no name: `# out = [3, 7]`"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(text: str, says: str, tmp_path: Path) -> None:
    write(tmp_path, "m.i", text)
    done = i("test", "m.i", "--target", "numpy", cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert says in done.stderr, done.stderr


@pytest.mark.parametrize(
    "lines",
    [
        "# in x [[1, 2], [3, 4]]\n# out [3, 8]",
        "# In x = [[1, 2], [3, 4]]\n# Out = [3, 8]",
        "#in x: [[1,2],[3,4]]\n  #OUTPUT: [3,8]",
        "## in [[1, 2], [3, 4]]\n# out f32:[3, 8]",
    ],
)
def test_no_line_of_an_example_is_passed_over(lines: str, tmp_path: Path) -> None:
    write(
        tmp_path,
        "m.i",
        f"# in the end 2 sums\n# in 2 steps\n# out of order\n{lines}\nsums = +ij~i\n",
    )
    done = i("test", "m.i", cwd=tmp_path)
    assert done.returncode == 1
    assert "out[1] is 7.0, and the example writes 8.0\n --> m.i:5:" in done.stderr


@pytest.mark.parametrize("second", ["total = +i~.", 'op total(x) = x ++ "n| => |"'])
def test_an_example_is_of_the_definition_below_it(second: str, tmp_path: Path) -> None:
    """Files of several definitions had to be run once for each, by --def."""
    text = f"{SUMS}# in x = [1, 2]\n# out = 3\n{second}\n"
    write(tmp_path, "m.i", text)
    done = i("test", "m.i", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "m.i ok: 2 examples of sums, total\n")
    write(tmp_path, "m.i", text.replace("out = 3\n", "out = 4\n"))
    done = i("test", "m.i", cwd=tmp_path)
    assert done.returncode == 1
    assert "out is 3.0, and the example writes 4.0\n --> m.i:5:9" in done.stderr
    assert i("test", "m.i", "--update", cwd=tmp_path).returncode == 0
    assert "# out = 3\n" in (tmp_path / "m.i").read_text("utf-8")


def test_update_writes_what_comes_out(tmp_path: Path) -> None:
    write(tmp_path, "m.i", SUMS.replace("[3, 7]", "0"))
    write(tmp_path, "two.i", "# in x = [1, 2]\nboth = (+i~. & -i~i)\n")
    write(
        tmp_path,
        "again.i",
        "# in x = 1\n# out = 5\n#\n# in x = 2\n# out = i32:2\nf = i32 >> -.~.\n",
    )
    done = i("test", ".", "--update", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "m.i").read_text("utf-8") == SUMS
    assert (tmp_path / "two.i").read_text("utf-8") == (
        "# in x = [1, 2]\n# out 0 = 3\n# out 1 = [-1, -2]\nboth = (+i~. & -i~i)\n"
    )
    assert "# out = i32:-1\n#\n# in x = 2\n# out = i32:-2\n" in (tmp_path / "again.i").read_text(
        "utf-8"
    )
    assert i("test", ".", cwd=tmp_path).returncode == 0


def test_inputs_go_by_name_and_functions_have_examples_too(tmp_path: Path) -> None:
    write(tmp_path, "named.i", "# in y = 1\n# in x = 3\n# out = 2\nf(x, y) = .-.~.\n")
    write(tmp_path, "op.i", "# in x = [[1, 2]]\n# out = [[2, 4]]\nop double(x) = x + x\n")
    write(tmp_path, "cd.i", "# in x = [1, nan]\n# out = [1, nan]\ncd same(x) { return x }\n")
    write(tmp_path, "order.i", "# in = [1, 2]\n# in = [1, 1]\n# out = [0, 1]\nf(x, y) = i-i~i\n")
    files = ("named.i", "op.i", "cd.i", "order.i")
    done = i("test", *files, cwd=tmp_path)
    of = ("f", "double", "same", "f")
    said = "".join(f"{a} ok: 1 example of {b}\n" for a, b in zip(files, of, strict=True))
    assert (done.returncode, done.stdout) == (0, said), done.stderr


def test_inputs_of_an_example_are_those_that_the_definition_names(tmp_path: Path) -> None:
    minus = "# in  x  = [5, 5]\n#in y= [1, 1]\n# out =  [4, 4]\nminus(x[n], y[n]) = i-i~i\n"
    write(tmp_path, "minus.i", minus)
    write(tmp_path, "wrong.i", minus.replace("y= [", "z = ["))
    write(tmp_path, "free.i", minus.replace("(x[n], y[n])", ""))
    done = i("test", ".", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (
        1,
        "free.i ok: 1 example of minus\nminus.i ok: 1 example of minus\n",
    )
    assert "error[E0747]: the program has no input named z\n --> wrong.i:2:" in done.stderr
    assert "its inputs are x, y" in done.stderr


@pytest.mark.parametrize(
    "lines",
    [
        "# in x = [1, 2], y = [4, 5]\n# out = [0.25, 0.4]",
        "# in x = [1, 2],y=f32:[4, 5]\n# out [0.3, 0.4] within 0.1",
        "# in x: [1, 2]\n# in y: [4, 5]\n# out = [0.251, 0.399] within 1e-2",
    ],
)
def test_lines_of_several_inputs_and_how_far_a_result_may_be(lines: str, tmp_path: Path) -> None:
    write(tmp_path, "m.i", f"{lines}\nratio(x[n], y[n]) = i/i~i\n")
    done = i("test", "m.i", "--target", "numpy", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "m.i ok: 1 example of ratio\n"


def test_def_takes_the_examples_of_that_definition(tmp_path: Path) -> None:
    """Those of `f` have inputs that `g` has not; a definition that others use has those above it."""
    text = (
        "# in x = [1, 2]\n# out = [2, 4]\nf(x[n]) = (i+i~i)(x, x)\n"
        "# in z = [1, 2]\n# out = [1, 4]\ng(z[n]) = (i*i~i)(z, z)\n"
    )
    write(tmp_path, "two.i", text)
    for name in ("f", "g"):
        done = i("test", "two.i", "--def", name, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, f"two.i ok: 1 example of {name}\n")
    done = i("test", "two.i", "--def", "h", cwd=tmp_path)
    assert (done.returncode, done.stderr.split(":")[0]) == (2, "error[E0808]")
    used = "# in x = [1, 2]\n# out = [2, 4]\nf(x[n]) = (i+i~i)(x, x)\n# in y = [1]\n# out = [4]\ng(y[n]) = f(f(y))\n"
    write(tmp_path, "used.i", used)
    for name in ("f", "g"):
        done = i("test", "used.i", "--def", name, cwd=tmp_path)
        assert done.stdout.startswith("used.i ok: 1 example of f" if name == "f" else ""), done
