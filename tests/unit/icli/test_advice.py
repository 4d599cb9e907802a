"""What the command line suggests for wrong operands, options, files and codes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.unit.icli.front import i

PROGRAM = "i~i"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that commands are tried on."""
    path = tmp_path_factory.mktemp("files")
    (path / "softmax.i").write_text("x = I\n", encoding="utf-8")
    (path / "model.i").write_text("x = I\n", encoding="utf-8")
    (path / "lib.i").write_text("use std\nroot = sqrt >> sqrt\n", encoding="utf-8")
    (path / "net.i").write_text("use nn\nop net(x) = linear(x; 2)\n", encoding="utf-8")
    (path / "bad.npy").write_bytes(b"hello")
    (path / "bad.npz").write_bytes(b"hello")
    (path / "short.npy").write_bytes(b"\x93NUMPY")
    np.save(path / "complex.npy", np.ones(2, complex))
    np.save(path / "text.npy", np.array(["a"]))
    np.save(path / "x.npy", np.ones(3, np.float32))
    return path


@pytest.mark.parametrize(
    ("tokens", "code", "shown"),
    [
        (
            ("run", "a / sum(a)", "[1,2]"),
            "E0104",
            "`a = [1,2]`, then `t1 = sum a`, then `i/.~i a t1`",
        ),
        (("run", "a @ b", "[1,2]", "[3,4]"), "E0104", "then `k*k~k >> +k~. a b`"),
        (("run", "a @ b", "[1,2]"), "E0104", "letters are axes, not arrays"),
        (("run", "x * 2", "[1,2]"), "E0104", "write `(I | 2) >> x*.~x`"),
        (("run", PROGRAM, "[[1,2];[3,4]]"), "E0721", "write `[[1,2],[3,4]]`"),
        (("run", PROGRAM, "[1 2; 3 4]"), "E0721", "write `[[1, 2], [3, 4]]`"),
        (("run", PROGRAM, "1,2"), "E0721", "write `[1,2]`"),
        (("run", PROGRAM, "1 2"), "E0721", "write `[1, 2]`"),
        (("run", PROGRAM, "[1 2]"), "E0721", "write `[1, 2]`"),
        (("run", PROGRAM, "(1,2)"), "E0720", "write `[1,2]`"),
        (("run", PROGRAM, "1+1"), "E0721", "compute in a program"),
        (("run", PROGRAM, "arange(2, 3, 0)"), "E0720", "arange(0, 1, 0.1)"),
        (("run", PROGRAM, "zeros(9000000000000)"), "E0727", "take a smaller array"),
        (("run", PROGRAM, "0:20"), "E0721", "write `arange(0, 20)`, which ends before 20"),
        (("run", PROGRAM, "full:2x7"), "E0720", "write `full(2, 7)`"),
        (("run", PROGRAM, "x=x.npy"), "E0747", "its inputs are in0"),
        (("explain", PROGRAM, "--shape", "x=4x5"), "E0814", "inputs are in0"),
        (
            ("run", PROGRAM, "nosuch.npy"),
            "E0725",
            "this folder has bad.npy, complex.npy, short.npy",
        ),
        (("run", PROGRAM, "y.npy"), "E0725", "did you mean x.npy?"),
        (("run", PROGRAM, "bad.npy"), "E0728", "numpy.save('bad.npy', x)"),
        (("run", PROGRAM, "nowhere/x.npy"), "E0725", "there is no folder nowhere"),
        (("run", "softmx.i"), "E0725", "did you mean softmax.i?"),
        (("check", "nosuch.i"), "E0725", "this folder has lib.i, model.i, net.i, softmax.i"),
        (("test", "nosuch"), "E0725", "name a file that exists and that you may read"),
        (("test", "ij~i"), "E0725", "it takes the name of a file: write the program to one"),
        (
            ("build", "op f(x) = x"),
            "E0725",
            "it takes the name of a file: write the program to one",
        ),
        (("fmt", "ij~i"), "E0725", "it takes the name of a file: write the program to one"),
        (("run", "ij*2~ij", "rand:2x2"), "E0701", "`(I | 2) >> ij*.~ij`"),
        (("run", "1/i~i", "rand:2"), "E0701", "`(1 | I) >> ./i~i`"),
        (("run", "ij>>0~ij", "rand:2x2"), "E0701", "`(I | 0) >> ij>>.~ij`"),
        (("run", "2 >> .~."), "E0701", "`(2) >> .~.`"),
        (("run", "model.i", "--def", "nett", "--load", "m.npz"), "E0808", ""),
        (("run", "softmax.i", "x", "[1,2]"), "E0818", "--def x runs it"),
        (("grad", "softmax"), "E0508", "`--shape 2x3`"),
        (("run", "topk", "[1,2]"), "E0401", '`einx.sort("... [c]")`'),
        (
            ("run", "(x - x.mean(0)) / x.std(0)", "[[1, 2], [3, 4]]"),
            "E0106",
            "then `t7 = (I | 0.5) >> j^.~j t6`, then `ij/j~ij t2 t7`",
        ),
        (("run", "tensordot", "[1,2]"), "E0401", "`ik*kj~ijk >> +ijk~ij`"),
        (("run", "+ij~i | ij/i~ij", "rand:2x2"), "E0701", "`(I & +ij~i) >> ij/i~ij`"),
        (("run", "+ij~i | >ij~i", "rand:2x2"), "E0701", "`+ij~i & >ij~i`"),
        (("run", "+ij~i | ^i~i", "rand:2x2"), "E0701", "`+ij~i >> ^i~i`"),
        (("run", "ik*kj~ikj", "rand:2x2"), "E0701", "in0 (`ik`), in1 (`kj`); missing: in1"),
        (("run", PROGRAM, "[1]", "-x"), "E0802", "`i run --help` lists its options"),
        (("run", PROGRAM, "[1]", "--taget", "c"), "E0802", "did you mean --target?"),
        (("explain", PROGRAM, "-shape", "3"), "E0802", "did you mean --shape?"),
        (("explain", "E0207x"), "E0401", ""),
        (("run", ">", "[1]"), "E0103", "`>ij~i` maximum along j"),
        (("explain", "--", ">"), "E0103", "`>ij~i` maximum along j"),
        (("train", "model.i", "--momentum", "0.5"), "E0802", "--config momentum=0.1"),
        (("run", PROGRAM, "[1]", "--dtype", "f64"), "E0802", "f64:[1,2]"),
        (("run", PROGRAM, "f16:[1]"), "E0720", "there is no type f16: types are f32"),
        (("run", PROGRAM, "net.safetensors"), "E0720", "--load FILE.safetensors"),
        (("run", PROGRAM, "short.npy"), "E0728", "it ends within its header"),
        (("run", PROGRAM, "complex.npy"), "E0728", "x.real and x.imag"),
        (("run", PROGRAM, "text.npy"), "E0728", "x.astype(numpy.float32)"),
        (("run", PROGRAM, "bad.npz"), "E0728", "numpy.savez("),
        (("run", "net.i", "--load", "x.npy", "[[1]]"), "E0761", "it is a .npy file"),
        (("build", "net.i", "--shape", "x=n|n"), "E0766", "--shape x='n|3'"),
        (("check", "net.i", "--def", "linar"), "E0808", "it defines net"),
        (("build", "lib.i", "--def", "nope"), "E0808", "it defines root"),
        (("train", "model.i", "--lr", "0.5"), "E0802", "--config lr=0.1"),
        (("check", "model.i", "--def", "y"), "E0808", "it defines x"),
        (("check", "ij~i", "--def", "f"), "E0809", "leave --def out"),
        (("doctor", "all"), "E0806", "help: i doctor"),
        (("softmax",), "E0801", "i run 'softmax' ARRAY"),
        (("ij~ji",), "E0801", "i explain 'ij~ji'"),
        (("version",), "E0801", "help: `i --version`"),
        (("demo",), "E0801", "`i learn`"),
        (("tune", "ij~ji", "rand:64x32"), "E0806", "--shape 64x32"),
        (("explain", "i*j~ij", "ones(2)", "[1,2,3]"), "E0806", "--shape 2,3"),
        (("--versoin",), "E0802", "did you mean --version?"),
        (("run",), "E0805", "i run '+ij~i' '[[1, 2], [3, 4]]'"),
        (("test",), "E0805", "help: i test model.i"),
        (("train", "model.i", "--data", "x.npy", "t.npy"), "E0806", "--data x=x.npy,t=t.npy"),
        (("explain", "E7777"), "E0813", "`i explain codes` lists all"),
    ],
)
def test_help(tokens: tuple[str, ...], code: str, shown: str, folder: Path) -> None:
    done = i(*tokens, cwd=folder)
    assert f"error[{code}]" in done.stderr
    assert shown in done.stderr
    assert "-h?" not in done.stderr


def test_inputs_are_counted_in_words(tmp_path: Path) -> None:
    (tmp_path / "m.i").write_text("f(x) = i*i~i\n", encoding="utf-8")
    assert "f names 1 input, but its program has 2" in i("check", "m.i", cwd=tmp_path).stderr


def test_a_number_that_is_an_input_is_told_where_the_head_lacks_it(tmp_path: Path) -> None:
    text = "far(a[m], b[n]) = i-j~ij >> ij^2~ij\nnear(a[m], b[n]) = (far >> <ij~i)(a, b)\n"
    (tmp_path / "m.i").write_text(text, encoding="utf-8")
    told = i("check", "m.i", cwd=tmp_path).stderr
    assert "far names 2 inputs, but its program has 3" in told
    assert "the constant is written `(I | 2) >> ij^.~ij`" in told


def test_codes_in_short() -> None:
    assert i("explain", "E202").stdout == i("explain", "E0202").stdout
    begun = i("explain", "E05").stdout.splitlines()
    assert begun[0] == "E0501  A value of another rank than its reader expects"
    assert all(line.startswith("E05") for line in begun)
    every = i("explain", "codes").stdout.splitlines()
    assert set(begun) < set(every)


def test_codes_as_json() -> None:
    told = json.loads(i("explain", "E202", "--json").stdout)
    assert (told["code"], told["title"]) == ("E0202", "Two inputs and a reduction")
    assert "bad: i explain" in told["text"]
    listed = json.loads(i("explain", "E05", "--json").stdout)["codes"]
    assert listed[0] == {
        "code": "E0501",
        "title": "A value of another rank than its reader expects",
    }
