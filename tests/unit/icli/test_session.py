"""The REPL without a terminal: what a line gives, and what it leaves behind."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ilang.core.diagnostic import Error
from ilang.core.explain.explanation import Explanation
from ilang.icli.candidates import completions
from ilang.icli.codes import answer
from ilang.icli.lines import goes_on, split_words
from ilang.icli.replies import Reply
from ilang.icli.session import ReplSession

MATMUL = "ik*kj~ijk >> +ijk~ij"

pytestmark = pytest.mark.usefixtures("compiled_quickly")  # right values are asked for


def text(reply: Reply) -> str:
    assert not reply.failed, [str(part) for part in reply.parts]
    return "\n".join(part for part in reply.parts if isinstance(part, str))


def page(reply: Reply) -> Explanation:
    (part,) = reply.parts
    assert isinstance(part, Explanation), part
    return part


def code(reply: Reply) -> str:
    assert reply.failed
    (part,) = reply.parts
    assert isinstance(part, Error)
    return part.code


@pytest.fixture
def session() -> ReplSession:
    made = ReplSession()
    made.feed("x = rand:2x3")
    made.feed("w = [[1,2],[3,4],[5,6]]")
    return made


def test_a_program_is_explained_before_there_is_data() -> None:
    shown = page(ReplSession().feed(MATMUL))
    assert [row.extents for row in shown.outputs] == [("i", "j")]
    assert "for i in 0..n_i" in shown.execution.loops


def test_a_program_takes_the_shapes_at_hand(session: ReplSession) -> None:
    shown = page(session.feed(MATMUL))
    assert [row.extents for row in shown.outputs] == [("2", "2")]
    assert shown.notes[-1] == "at the shapes of x, w"
    assert page(session.feed("+ij~i")).outputs[0].extents == ("i",)
    assert page(session.feed("ij*jk~ijk >> +ijk~k")).notes


def test_shapes_that_do_not_fit_are_left_out(session: ReplSession) -> None:
    assert page(session.feed("ij+ij~ij")).notes == ()


def test_named_inputs_take_the_arrays_of_their_names(session: ReplSession) -> None:
    session.feed("f(w[m,n]) = +ij~i")
    assert page(session.feed("f")).outputs[0].extents == ("3",)


def test_shapes_can_be_set() -> None:
    session = ReplSession()
    assert text(session.feed(":shape 4x8")) == "shapes are 4×8"
    assert page(session.feed("+ij~i")).outputs[0].extents == ("4",)
    session.feed(":shape off")
    assert page(session.feed("+ij~i")).outputs[0].extents == ("i",)
    assert code(session.feed(":shape 4y8")) == "E0810"


def test_arrays_are_bound_and_shown() -> None:
    session = ReplSession()
    assert text(session.feed("x = [1,2]")) == "x  2  f32"
    assert text(session.feed("y = x")) == "y  2  f32"
    assert text(session.feed("x")) == "x  2  f32\n[1. 2.]\n"
    assert text(session.feed("[[true]]")) == "[[true]]  1×1  bool\n[[ True]]\n"
    assert code(session.feed("i = [1,2]")) == "E0404"
    assert code(session.feed("z = [1,,2]")) == "E0721"
    assert code(session.feed("z = nofile.npy")) == "E0725"


def test_a_sign_after_an_array_is_an_operator() -> None:
    session = ReplSession()
    session.feed("x = [1,2]")
    assert text(session.feed("x -1")).endswith("[0. 1.]\n")
    session.feed("y = x +1")
    assert text(session.feed("y")).endswith("[2. 3.]\n")


@pytest.mark.parametrize(
    "line", ["mm x w", "mm(x, w)", f"{MATMUL} x w", "mm x [[1,2],[3,4],[5,6]]", "(mm >> I) x w"]
)
def test_ways_to_apply(session: ReplSession, line: str) -> None:
    session.feed(f"mm = {MATMUL}")
    assert text(session.feed(line)).startswith("out  2×2  f32\n[[")
    expected = session.arrays["x"] @ session.arrays["w"]
    np.testing.assert_allclose(session.arrays["_"], expected, rtol=1e-6)


def test_results_are_bound(session: ReplSession) -> None:
    assert text(session.feed("y = +ij~i w")) == "y  3  f32"
    assert text(session.feed("+i~. y")) == "out  .  f32\n21.\n"
    assert text(session.feed("-.~. _")) == "out  .  f32\n-21.\n"
    assert code(session.feed("z, z = (+ij~i & >ij~i) w")) == "E0423"
    assert code(session.feed("z = (+ij~i & >ij~i) w")) == "E0815"


def test_several_outputs(session: ReplSession) -> None:
    assert text(session.feed("(+ij~i & >ij~ij) w")).count("out") == 2


def test_written_types_reach_literals() -> None:
    session = ReplSession()
    session.feed("f(a: i64[n]) = +i~.")
    assert text(session.feed("f [1,2]")) == "out  .  i64\n3\n"


def test_definitions_grow_and_change() -> None:
    session = ReplSession()
    session.feed("a = ^i~i")
    session.feed("b = a >> -i~i")
    assert [step.text for step in page(session.feed("b")).steps] == ["^i~i", "-i~i"]
    session.feed("a = $i~i")
    assert [step.text for step in page(session.feed("b")).steps] == ["$i~i", "-i~i"]
    assert code(session.feed("a = b >> -i~i")) == "E0403"
    assert text(session.feed("c = d >> -i~i")) == "c  waits for d"
    assert [step.text for step in page(session.feed("a")).steps] == ["$i~i"]


def test_a_definition_answers_its_signature(session: ReplSession) -> None:
    assert text(session.feed("mm(a[m,k], b[k,n]) = ik*kj~ijk >> +ijk~ij")) == (
        "mm(a[2,3], b[3,2]) -> [2,2]   at the shapes of x, w"
    )
    assert page(session.feed(":explain")) is not None
    assert text(session.feed("f = ^i~i  # kept")) == "f(in0[i]) -> [i]"
    assert session.texts["f"].endswith("# kept")


@pytest.mark.parametrize(
    ("line", "at"), [("+ij~i zz", 7), ("mm x zz", 6), ("y = +ij~i zz", 11), ("mm(x, zz)", 7)]
)
def test_an_unknown_array_is_called_unknown(session: ReplSession, line: str, at: int) -> None:
    session.feed(f"mm = {MATMUL}")
    reply = session.feed(line)
    assert code(reply) == "E0820"
    said = str(reply.parts[0])
    assert f"there is no array named `zz`\n --> <repl>:1:{at}\n" in said
    assert "there are x, w; bind one: `zz = rand:2x3`" in said
    assert "bind one: `x = rand:2x3`" in str(session.feed("i~i é").parts[0])


def test_an_unknown_array_may_be_misspelled(session: ReplSession) -> None:
    session.feed("weights = rand:3")
    assert "did you mean `weights`?" in str(session.feed("+i~. weigths").parts[0])
    assert "no array and no definition named `zz`" in str(session.feed("zz").parts[0])


@pytest.mark.parametrize(
    ("line", "written", "expected"),
    [
        ("range(3)", "arange(3)", np.arange(3)),
        ("np.identity(2)", "eye(2)", np.eye(2)),
        ("eye(2) + ones((2, 2))", "ij+ij~ij eye(2) ones((2,2))", [[2, 1], [1, 2]]),
        ("w*2", "(I | 2) >> ij*.~ij w", [[2, 4], [6, 8], [10, 12]]),
        ("1-w", "(1 | I) >> .-ij~ij w", [[0, -1], [-2, -3], [-4, -5]]),
        ("w + w", "ij+ij~ij w w", [[2, 4], [6, 8], [10, 12]]),
        ("w + v", "ij+j~ij w v", [[11, 22], [13, 24], [15, 26]]),
        ("1+1", ".+.~. 1 1", 2),
        ("w**2", "(I | 2) >> ij^.~ij w", [[1, 4], [9, 16], [25, 36]]),
        ("w > 3", "(I | 3) >> ij>>.~ij w", [[0, 0], [0, 1], [1, 1]]),
        ("w.T", "ij~ji w", [[1, 3, 5], [2, 4, 6]]),
        ("w @ v", "ik*k~ik >> +ik~i w v", [50, 110, 170]),
        ("w[0]", "0j~j w", [1, 2]),
        ("w[-1, 0]", "2j~j >> 0~. w", 5),
        ("w[:, 1]", "i1~i w", [2, 4, 6]),
        ("np.sum(w)", "+ij~. w", 21),
        ("w.max(axis=1)", ">ij~i w", [2, 4, 6]),
        ("np.mean(w, axis=0)", "(+ij~j | 3) >> j/.~j w", [3, 4]),
        ("np.greater(w, 3)", "(I | 3) >> ij>>.~ij w", [[0, 0], [0, 1], [1, 1]]),
        ("w.any(axis=0)", "||ij~j w", [1, 1]),
        ("np.reciprocal(v)", "/i~i v", [0.1, 0.05]),
    ],
)
def test_what_is_spelled_as_in_python(
    session: ReplSession, line: str, written: str, expected: Any
) -> None:
    session.feed("v = [10, 20]")
    for each in (line, written):
        text(session.feed(f"y = {each}"))
        np.testing.assert_allclose(session.arrays["y"], expected)


@pytest.mark.parametrize("line", ["i+i", "w[9]", "f(x)", "x >> -i~i"])
def test_other_lines_keep_their_own_errors(session: ReplSession, line: str) -> None:
    assert code(session.feed(line)) not in ("E0820", "E0821")


def test_help_lines_are_true_here(session: ReplSession) -> None:
    for line in ("y = ij ij", "y = = 3", "y = x = w", "x >> y = 2"):
        assert "belongs in a file" not in str(session.feed(line).parts[0])
    assert "`x` is an array" in str(session.feed("f = x >> -i~i").parts[0])


def test_comments_are_as_in_files(session: ReplSession) -> None:
    assert text(session.feed("+i~. [1,2] # one")) == "out  .  f32\n3.\n"
    assert text(session.feed("y = [1,2]  # one")) == "y  2  f32"
    assert text(session.feed("y # one")).startswith("y  2  f32")
    assert session.feed("quit # now").leaves


def test_a_word_that_numpy_has_is_told_its_program(session: ReplSession) -> None:
    line = 'softmax(x) = einx.softmax("... [c]")   of `std`; apply it: `softmax rand:2x3`'
    assert text(ReplSession().feed("softmax")) == line
    assert text(session.feed("softmax [[1, 1]]")).endswith("[[0.5 0.5]]\n")
    assert text(session.feed("y = softmax([[1, 1]])")) == "y  1×2  f32"
    assert text(session.feed("sum(relu(y))")).endswith("\n1.\n")
    assert text(session.feed("double(x[n,m]) = softmax >> (I | 2) >> ij*.~ij"))
    assert text(session.feed("double([[1, 1]])")).endswith("[[1. 1.]]\n")
    assert text(session.feed("op centered(x) = x - mean(x; 1)")) == "op centered(x)"
    assert text(session.feed("centered [[1, 3]]")).endswith("[[-1.  1.]]\n")
    assert code(session.feed("mean = +ij~i")) == "E0444"  # what centered uses has axes
    assert text(session.feed("max = +ij~i")).startswith("max(in0[i,j])")
    assert text(session.feed("max [[1, 3]]")).endswith("[4.]\n")
    assert "`exp` is" in str(session.feed("exp").parts[0])
    assert "bind one: `foo = rand:2x3`" in str(session.feed("foo").parts[0])


def test_words_of_other_shells() -> None:
    for word in ("exit", "quit", "exit()", " quit "):
        assert ReplSession().feed(word).leaves
    assert (
        text(ReplSession().feed("help"))
        == text(ReplSession().feed(":help"))
        == text(ReplSession().feed("?"))
    )
    named = ReplSession()
    named.feed("help = [1,2]")
    assert text(named.feed("help")).startswith("help  2  f32")


def test_help_of_one_command() -> None:
    assert text(ReplSession().feed(":help loops")).startswith(
        ":loops [PROGRAM [ARRAYS]]    the loops"
    )
    assert text(ReplSession().feed(":help :ti")).splitlines()[1].split() == [
        "also",
        ":t,",
        ":timeit",
    ]
    assert code(ReplSession().feed(":help lops")) == "E0817"


def test_questions_in_the_spelling_of_ipython(session: ReplSession) -> None:
    for line in ("?v", "v?", "??v", "v??", ":help v"):
        session.feed("v = [10, 20]")
        assert text(session.feed(line)).startswith("v  2  f32")
    assert text(session.feed("?time")) == text(session.feed(":help time"))
    said = text(session.feed("?>"))
    assert ">ij~i      maximum along j, which the result lacks" in said
    assert ">ij~ij     maximum with 0 of each element" in said
    assert "ij>ij~ij   maximum, element by element" in said
    assert "softmax" in text(ReplSession().feed("?softmax"))
    assert text(ReplSession().feed("?E0701")) == answer("E0701")[0]
    session.feed("E1 = [1, 2]")
    assert "2." in text(session.feed("?E1"))


def test_arrays_fit_the_width() -> None:
    session = ReplSession(lambda: 40)
    session.feed("x = rand:30")
    lines = text(session.feed("x")).splitlines()
    assert max(map(len, lines)) <= 40
    assert len(lines) > 5


def test_an_error_points_at_the_line_as_typed() -> None:
    session = ReplSession()
    session.feed("a = ^i~i")
    (error,) = session.feed("b = a >> i÷i~i").parts
    assert "--> <repl>:1:11" in str(error)


def test_an_array_is_no_component(session: ReplSession) -> None:
    (error,) = session.feed("x >> -i~i").parts
    assert "is an array" in str(error)


def test_names_move_between_arrays_and_definitions() -> None:
    session = ReplSession()
    session.feed("a = ^i~i")
    session.feed("a = [1,2]")
    assert code(session.feed("b = a >> -i~i")) == "E0401"
    session.feed("a = $i~i")
    assert text(session.feed(":names")) == "a = $i~i"
    session.feed(":drop a")
    assert text(session.feed(":names")) == "nothing is named yet"
    assert code(session.feed(":drop a")) == "E0819"


def test_stages_of_the_last_program(session: ReplSession) -> None:
    assert code(ReplSession().feed(":loops")) == "E0819"
    session.feed("+ij~i x")
    assert "for i in 0..2" in text(session.feed(":loops"))
    assert "for i in 0..3" in text(session.feed(":loops +ij~i w"))
    assert "+ij~i" in text(session.feed(":schedule"))
    assert "int" in text(session.feed(":c"))
    assert "(best of" in text(session.feed(":time +ij~i x"))


def test_saving_and_loading(tmp_path: Path) -> None:
    session, other = ReplSession(), ReplSession()
    session.feed("exp = ^ij~ij")
    session.feed("f(x[m,n]) = exp >> \n  +ij~i")
    assert text(session.feed(f":save {tmp_path}/m.i")).startswith("2 definitions saved")
    assert text(other.feed(f":load {tmp_path}/m.i")) == "2 definitions: exp, f"
    assert page(other.feed("f")) == page(session.feed("f"))
    assert code(other.feed(":load nofile.i")) == "E0725"
    (error,) = other.feed(":load c.npy").parts
    assert isinstance(error, Error)
    assert error.help == "bind an array to a name: `x = c.npy`"
    assert code(ReplSession().feed(f":save {tmp_path}/none.i")) == "E0819"


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (":type x", "x  2×2  f32\n"),
        (":info x", "x  2×2  f32\n"),
        (":whos", "x  2×2  f32\nrows = +ij~i"),
        ("whos", "x  2×2  f32\nrows = +ij~i"),
        ("dir()", "x  2×2  f32\nrows = +ij~i"),
        (":type rows x", "out  f32[2]"),
        ("%timeit rows x", "best of"),
        ("@time rows x", "best of"),
        (":asm rows x", "rows_k0("),
    ],
)
@pytest.mark.usefixtures("compiled_quickly")
def test_commands_of_other_shells(line: str, answer: str) -> None:
    session = ReplSession()
    for each in ("x = [[1,2],[3,4]]", "rows = +ij~i"):
        session.feed(each)
    assert answer in text(session.feed(line))
    assert page(session.feed("help(rows)")) == page(session.feed("rows"))


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        (":set +s", "no settings"),
        ("clear", "Ctrl-L"),
        (":history", "Ctrl-R"),
        (":!ls", "another terminal"),
        (":sh", "there are :shapes, :shape"),
        (":tme", "did you mean :time?"),
    ],
)
def test_commands_that_are_elsewhere(line: str, advice: str) -> None:
    (part,) = ReplSession().feed(line).parts
    assert isinstance(part, Error)
    assert part.code == "E0817"
    assert advice in part.help


def test_the_last_file_is_loaded_again(tmp_path: Path) -> None:
    file = tmp_path / "m.i"
    file.write_text("f = +ij~i\n", "utf-8")
    session = ReplSession()
    assert code(session.feed(":load")) == "E0819"
    session.feed(f":load {file}")
    file.write_text("f = +ij~j\n", "utf-8")
    assert text(session.feed(":reload")) == "1 definition: f"
    assert session.texts["f"] == "f = +ij~j"


def test_leaving_and_noise() -> None:
    assert ReplSession().feed(":q").leaves
    assert ReplSession().feed("  # a comment").parts == ()
    assert code(ReplSession().feed(":lops")) == "E0817"
    assert code(ReplSession().feed(":lo")) == "E0817"
    assert text(ReplSession().feed(":nam")) == "nothing is named yet"
    assert text(ReplSession().feed(":help")).count("\n") > 10


@pytest.mark.parametrize(
    "line",
    [
        "=",
        "x =",
        "f(",
        "f(x) =",
        ")",
        ":",
        ": ",
        "\x00",
        "\udcff",
        "~",
        "a = b = c",
        "f()()",
        "[",
        "1 2",
    ],
)
def test_odd_lines_are_answered(line: str) -> None:
    reply = ReplSession().feed(line)
    assert all(not isinstance(part, Error) or part.code < "E99" for part in reply.parts)


def test_a_program_of_any_rank_beside_arrays_that_do_not_fit(session: ReplSession) -> None:
    session.feed("x = [1, 2]")
    session.feed("y = [3, 4]")
    reply = session.feed("I")
    assert "internal error" not in str(reply.parts[0])


def test_completions(session: ReplSession) -> None:
    session.feed("scores = +ij~i")
    assert completions(session, "sc") == ["scores"]
    assert completions(session, ":lo") == [":loops", ":load"]
    assert completions(session, "r") == ["relu", "rand:", "rand(", "randn("]
    in_function = completions(session, "re", "op f(x) = ")
    assert in_function == ["repeat", "return", "recip", "recip_sqrt", "relu"]
    assert completions(session, "o", "use nn, ") == ["optim"]
    assert completions(session, "logs", "f = einx.") == ["logsumexp"]
    assert completions(session, "su", 'einx.reduce("a [b]", op="') == [
        "sum",
        "subtract",
        "subtract_at",
    ]
    assert completions(session, "sc", 'einx.reduce("a [b]", op=') == ["scores"]


def test_operations_are_told_definitions(session: ReplSession) -> None:
    session.feed("total = +ij~.")
    session.feed("t = [[[1,2],[3,4]],[[5,6],[7,8]]]")
    assert "[10. 26.]" in text(session.feed('einx.vmap("a [b c] -> a", op=total) t'))
    assert code(session.feed('einx.vmap("a [b] -> a", op=t) t')) == "E0401"


def test_lines_that_go_on() -> None:
    assert goes_on("f = (^i~i")
    assert goes_on("f = ^i~i >>")
    assert goes_on("x = [[1,2],")
    assert not goes_on("f = ^i~i")
    assert not goes_on("f = (^i~i\n")
    assert not goes_on(":load (")
    assert not goes_on("\x1b[31m")
    assert not goes_on("f = (^i∼i")  # noqa: RUF001
    assert not goes_on("f = (^i~i]")
    assert goes_on("f = (^i~i # é)")
    assert not goes_on("f = ^i~i # (")


@pytest.mark.parametrize(
    ("line", "bracket", "number"),
    [("x = [1", "[", 1), ("x = [[1],\n[2", "[", 2), ("f = ((i~i)\n>> i~i", "(", 1)],
)
def test_an_open_bracket_is_named(line: str, bracket: str, number: int) -> None:
    reply = ReplSession().feed(line)
    assert code(reply) == "E0110"
    assert f"the `{bracket}` on line {number} is never closed" in str(reply.parts[0])


def test_words() -> None:
    assert split_words("f x [[1, 2], [3, 4]]  y") == ["f", "x", "[[1, 2], [3, 4]]", "y"]
    assert split_words("x, [1, 2]", ",") == ["x", "[1, 2]"]


SOFTMAX = "softmax = (I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij"
BLOCK = """block(x[n,d], g[d]) = {
  s = softmax(x)  # rows
  big, small = (>ij~i & <ij~i)(s)
  (ij*j~ij)(s, g), big, small
}"""


@pytest.fixture
def named(session: ReplSession) -> ReplSession:
    """A session with definitions that take x."""
    assert not session.feed(SOFTMAX).failed
    assert not session.feed(BLOCK).failed
    return session


def test_an_application_takes_arrays_by_name(named: ReplSession) -> None:
    rows = named.arrays["x"]
    wanted = np.exp(rows) / np.exp(rows).sum(1, keepdims=True)
    assert text(named.feed("y = softmax(x)")) == "y  2×3  f32"
    np.testing.assert_allclose(named.arrays["y"], wanted, rtol=1e-6)
    named.feed("softmax( softmax( x ) )")
    named.feed("z = softmax(y)")
    np.testing.assert_array_equal(named.arrays["_"], named.arrays["z"])
    assert not named.feed("(ik*kj~ijk >> +ijk~ij)(y, w)").failed
    assert not named.feed("(ij*.~ij)(x, -0.5)").failed
    assert text(named.feed("softmax([[1,1],[2,2]])")).startswith("out  2×2  f32")
    assert text(named.feed("(ij+ij~ij)([[1]], [[1]])")).endswith("[[2.]]\n")


def test_values_have_names(named: ReplSession) -> None:
    shown = text(named.feed("block(x, [1,2,3])"))
    assert [line.split()[0] for line in shown.splitlines() if "f32" in line] == [
        *("out0", "big", "small")
    ]
    assert text(named.feed("a, b, _ = block(x, [1,2,3])")) == "a  2×3  f32\nb  2  f32"
    assert "_" in named.arrays
    assert code(named.feed("a, b = block(x, [1,2,3])")) == "E0815"


@pytest.mark.parametrize(
    ("line", "code_", "words"),
    [
        ("softmx(x)", "E0401", "did you mean `softmax`?"),
        ("softmax(zz)", "E0820", "there are x, w"),
        ("softmax(x, w)", "E0420", "every input"),
        ("softmax(block)", "E0426", "`block(x, y)`"),
        ("softmax(x", "E0110", "a line goes on"),
        ("b = softmax(+ij~i)", "E0130", "(+ij~i)(x)"),
        ("a, b = softmx(x)", "E0401", "did you mean `softmax`?"),
    ],
)
def test_applications_that_are_refused(
    named: ReplSession, line: str, code_: str, words: str
) -> None:
    reply = named.feed(line)
    assert code(reply) == code_
    assert words in str(reply.parts[0])


def test_a_block_is_typed_line_by_line() -> None:
    lines = BLOCK.splitlines()
    for count in range(1, len(lines)):
        assert goes_on("\n".join(lines[:count]))
    assert not goes_on(BLOCK)


def test_names_that_are_being_typed_are_completed(named: ReplSession) -> None:
    before = "f(first[m,n], second) = {\n  third, _ = block(first, second); "
    assert completions(named, "th", before) == ["third"]
    assert completions(named, "fi", before) == ["first"]
    assert completions(named, "mat", before) == ["matmul"]
    assert completions(named, "ei", before) == ["einsum", "einx."]


def test_axis_0_is_the_batch_of_calls() -> None:
    session = ReplSession()
    session.feed('op net(x; out = 1) = "w" * x + "b" out')
    session.feed(
        'cd step(x, t) { d = net(x) - t; loss = d *. d ++ "...|... => 0"; backprop(loss)\n'
        "for p in params(loss) { p =- 0.001 *. p.grad }\nreturn loss }"
    )
    for line in ("x = rand:32x3", "t = rand:32x1"):
        session.feed(line)
    told = text(session.feed("step x t"))
    assert "x  32×3, axis 0 is the batch\nt  32×1, axis 0 is the batch\n2 parameters" in told
    assert "batch" not in text(session.feed("step x t")), "it is said once"
    assert text(session.feed("y = net x")) == "y  32×1  f32", "with what was trained"
    assert text(session.feed("z = net(x) - t")) == "z  32×1  f32", "out is a name of the text"
    assert text(session.feed(":shape x=|32,3")) == "shapes are x=|32,3"
    assert "y  1  f32" in text(session.feed("y = net x")), "one example of 32 by 3 features"
    assert text(session.feed(":shape x=4|3 t=4|1")) == "shapes are x=4|3   t=4|1"
    assert "x[4,3]" in text(session.feed("step"))
    assert code(session.feed("net x")) == "E0754"
    assert "at hand" in text(session.feed(":shape off"))
    for wrong in ("x=a|3", "=3", "x=1||2"):
        assert code(session.feed(f":shape {wrong}")) == "E0810"


def test_help_names_the_command_for_shapes(session: ReplSession) -> None:
    session.feed('both = einx.softmax("... [c]") >> (I & I)')
    session.feed('op net(x) = "w" 3 * x')
    for line in ("softmax >> softmax", "use nn", "op f(x) = linear(x; 3)", "f"):
        for part in session.feed(line).parts:
            assert "--shape" not in str(part) or not isinstance(part, Error), part


def test_a_session_that_runs_can_be_saved_and_means_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    session = ReplSession()
    lines = (
        "x = rand:2x3",
        "use nn",
        "sm = softmax",
        "cc(a[m,n]) = { s = softmax(a); (+ij~j)(s) }",
    )
    for line in (*lines, "op net(x) = softmax(linear(x; 4))"):
        text(session.feed(line))
    before = text(session.feed("cc x"))
    assert text(session.feed(":save m.i")) == "3 definitions saved to m.i"
    assert (tmp_path / "m.i").read_text("utf-8").splitlines()[:2] == ["use std", "use nn"]
    other = ReplSession()
    text(other.feed("x = rand:2x3"))
    text(other.feed(":load m.i"))
    assert text(other.feed("cc x")) == before
    assert text(other.feed(":save m.i")).startswith("3 definitions saved to m.i")
    alone = ReplSession()
    text(alone.feed("x = rand:2x3"))
    text(alone.feed("sm = softmax"))
    text(alone.feed(":save alone.i"))
    assert (tmp_path / "alone.i").read_text("utf-8") == "use std\nsm = softmax\n"


def test_lines_call_tensor_functions_of_libraries_that_are_used() -> None:
    session = ReplSession()
    text(session.feed("x = [[1,2,3],[4,5,6]]"))
    assert code(session.feed("linear(x; 4)")) == "E0401"
    text(session.feed("use nn"))
    assert "2 parameters with random values" in text(session.feed("linear(x; 4)"))
    before = session.arrays["_"]
    text(session.feed("linear(x; 4) +. 1"))
    assert np.allclose(session.arrays["_"], before + 1)
    assert text(session.feed("squared_error x x")) == "out  1  f32\n[0.]\n"
    assert text(session.feed("squared_error(x, 1 + x) * 2")) == "out  1  f32\n[2.]\n"
    text(session.feed("dropout(x, 0; 0.5)"))
    assert set(np.ravel(session.arrays["_"] / session.arrays["x"])) <= {0, 2}
    assert text(session.feed("linear")) == "op linear(x; out)   `linear(x; out=1)` runs it"
    text(session.feed("linear = +ij~i"))
    assert text(session.feed("linear x")) == "out  2  f32\n[ 6. 15.]\n"


def test_calls_give_configuration_by_position_or_by_name(session: ReplSession) -> None:
    text(session.feed("x = [[1, 2]]"))
    assert text(session.feed("op f(x; n, m = 2) = x +. n *. m")) == (
        "op f(x; n, m = 2)   `f(x; n=1)` runs it"
    )
    for line in ("f(x; 3)", "f(x; n=3)", "f(x; 3, 2)", "f(x; 3, m = 2)", "f x; 3", "f x; n=3"):
        assert text(session.feed(line)).endswith("out  1×2  f32\n[[7. 8.]]\n"), line
    assert text(session.feed("f(x; 3) + f(x; n=3)")) == "out  1×2  f32\n[[14. 16.]]\n"
    cases = (
        ("f x n=3", "E0825", "`f(x; n=3)`"),
        ("f x", "E0750", "`f(x; n=1)`"),
        ("f(x; n=)", "E0825", "`n=2`"),
        ("f(x; 1, 2, 3)", "E0825", "they are n, m"),
        ("f(x; 1, n=2)", "E0825", "give it once"),
        ("f(x; k=2)", "E0750", "its configuration is n, m"),
    )
    for line, wanted, help_line in cases:
        (error,) = session.feed(line).parts
        assert isinstance(error, Error)
        assert (error.code, help_line in error.help) == (wanted, True), line


def test_pages_of_the_repl_say_what_is_typed_there(session: ReplSession) -> None:
    text(session.feed('op net(x, t) = "w" * x + "b" 3 - t'))
    page = text(session.feed("net"))
    assert page.endswith(":shape x=8|3 t=8|3\n"), page
    text(session.feed(":shape x=8|3 t=8|3"))
    page = text(session.feed("net"))
    assert ":loops  how it runs    :schedule    :c  its C" in page
    assert "--" not in page


def test_a_routine_is_told_how_many_arrays_it_takes(session: ReplSession) -> None:
    text(session.feed("use nn"))
    text(session.feed('op net(x) = "w" * x + "b" 3'))
    text(
        session.feed(
            "cd step(x, t) { loss = squared_error(net(x), t); backprop(loss); return loss }"
        )
    )
    for line, count in (("step x", 1), ("step x x x", 3)):
        (error,) = session.feed(line).parts
        assert isinstance(error, Error)
        assert error.message == f"step takes 2 arrays, and {count} are given"
        assert error.help == "its inputs are x, t"


def test_a_definition_whose_ranks_come_with_its_arrays_is_defined() -> None:
    session = ReplSession()
    assert text(session.feed('e = elementwise("f: x, y -> x*y")')) == (
        "e(in0, in1)   its arrays say what ranks they have"
    )
    text(session.feed("sm = softmax"))
    assert text(session.feed("e [1,2] [3,4]")) == "out  2  f32\n[3. 8.]\n"
    assert code(session.feed("e")) == "E0508"


def test_a_number_in_parentheses_is_a_number() -> None:
    session = ReplSession()
    for line in ("2", "(2)", "( 2 )"):
        assert text(session.feed(line)).strip().endswith("  .  f32\n2."), line


def test_functions_of_libraries_are_given_values_in_lines() -> None:
    session = ReplSession()
    for line in ("x = [[1,2],[3,5]]", "use nn", "layer_norm(x; 0.001)"):
        assert not session.feed(line).failed
    for line, name in (("layer_norm(x; -1)", "eps"), ("batch_norm(x; training=5)", "training")):
        (error,) = session.feed(line).parts
        assert isinstance(error, Error)
        assert error.code == "E0272"
        assert error.message.startswith(
            f"`{name}` of `{line.partition('(')[0]}` is a number from 0"
        )
        assert error.span is not None
        assert error.span.text() == line


def test_a_tensor_function_is_no_part_of_a_program() -> None:
    session = ReplSession()
    for line in ("x = [[1,2],[3,5]]", "op half(a) = a *. 0.5"):
        assert not session.feed(line).failed
    for line in ("half >> +ij~i", "half >> +ij~i x", "(half & +ij~i) x"):
        (error,) = session.feed(line).parts
        assert isinstance(error, Error)
        assert error.code == "E0440"
        assert "`+ij~i (half x)`" in error.help
    assert text(session.feed("+ij~i (half x)")).endswith("[1.5 4. ]\n")


@pytest.mark.parametrize(
    ("body", "code", "message", "help_line"),
    [
        ("mean(x; 5)", "E0503", "it needs a row of 5 axes, and [3] has 1", "-1 is the last"),
        ("matmul(x, x)", "E0503", "no axes", "`op f(x[i, j])`"),
        ("max(x, i64(x))", "E0601", "one argument of `max` is f32 and another is i64", "`f32(x)`"),
        ("exp(i64(x))", "E0602", "`exp` needs floats, and its argument is i64", "`f32(x)`"),
        ("linear(x; 4 /. 3)", "E0270", "not 1.33", "give numbers of which `4 /. 3` is"),
        ('einx.id("a -> a", x)', "E0112", "expected `=` after x", "behind the operation"),
    ],
)
def test_messages_of_tensor_functions(body: str, code: str, message: str, help_line: str) -> None:
    session = ReplSession()
    for line in ("x = [[1,2,3],[4,5,6]]", "use nn"):
        assert not session.feed(line).failed
    replies = [session.feed(f"op f(x) = {body}"), session.feed("f x")]
    error = next(each for reply in replies for each in reply.parts if isinstance(each, Error))
    assert error.code == code
    assert message in error.message
    assert help_line in error.help


def test_a_definition_that_others_use_is_dropped_with_them(session: ReplSession) -> None:
    for line in ("f = +ij~i", "g = f >> +i~.", "h = f >> >i~."):
        text(session.feed(line))
    (error,) = session.feed(":drop f").parts
    assert isinstance(error, Error)
    assert (error.code, error.message) == ("E0819", "g uses f")
    assert error.help == "drop g first, or `:drop g h f`"
    assert text(session.feed("f x")).startswith("out  2")
    text(session.feed(":drop g h f"))
    assert not session.texts
    text(session.feed("use nn"))
    text(session.feed("op net(x) = linear(x; 4)"))
    assert code(session.feed(":drop use nn")) == "E0401"


def test_an_axis_of_an_array_that_is_given_twice_is_told_by_its_place(session: ReplSession) -> None:
    """The program has one input; its two dimensions are those of two arguments."""
    text(session.feed("x = [[1, 2, 3], [4, 5, 6]]"))
    for line in ("matmul(x, x)", 'einsum("ij,jk->ik", x, x)'):
        (error,) = session.feed(line).parts
        assert isinstance(error, Error)
        assert error.message == (
            "axis j is 3 in the first x (dimension 1) and 2 in the second x (dimension 0)"
        )
    (error,) = session.feed("(ii~i)(x)").parts
    assert isinstance(error, Error)
    assert error.message == "axis i is 2 in x (dimension 0) and 3 in x (dimension 1)"
    (error,) = session.feed("matmul(x, [1, 2, 3])").parts
    assert isinstance(error, Error)
    assert error.message.startswith("in1 has rank 1")


@pytest.mark.parametrize(
    ("program", "marked"),
    [
        ('einx.softmax("a b")', 'einx.softmax("a [b]")'),
        ('einx.flip("a b c")', 'einx.flip("a b [c]")'),
        ('einx.softmax("a [b]")', ""),
    ],
)
def test_operations_without_brackets_are_noted(program: str, marked: str) -> None:
    page = " ".join(" ".join(map(str, ReplSession().feed(program).parts)).split())
    assert ("is in brackets, so it goes along none" in page) == bool(marked)
    assert not marked or f"along the last: `{marked}`" in page
