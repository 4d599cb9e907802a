"""Programs beside the same ones of NumPy, einsum, einops and PyTorch: ``i explain numpy``, docs/cheatsheet.md.

Arrays are called ``x[i,j]``, ``y[j,k]``, ``s[i,i]`` (square), ``a[i]``, ``b[j]``, ``v[n]``, ``w[3]``, ``q[i,d]``,
``k[j,d]``, ``t[n,i,j]``, ``u[n,j,k]``, ``ids[n]``. A test computes every program, and compares the results.
"""

from __future__ import annotations

SYSTEMS = ("NumPy", "einsum", "einops", "PyTorch")
"""The columns after the first one; the last one has programs of ours."""
NAMES = {"numpy": 0, "np": 0, "jax": 0, "einsum": 1, "einops": 2, "pytorch": 3, "torch": 3}
"""The words that ask for a column."""

Row = tuple[str, str, str, str, str, str, str]
"""The purpose of a program, the arrays that it takes, and its text in each of the systems, and here."""

ROWS: tuple[Row, ...] = (
    ("sum of each row", "x", "x.sum(1)", "ij->i", 'reduce(x, "i j -> i", "sum")', "x.sum(1)", "+ij~i"),
    ("sum of each column", "x", "x.sum(0)", "ij->j", 'reduce(x, "i j -> j", "sum")', "x.sum(0)", "+ij~j"),
    ("sum of all", "x", "x.sum()", "ij->", 'reduce(x, "i j ->", "sum")', "x.sum()", "+ij~."),
    ("mean of each row", "x", "x.mean(1)", "", 'reduce(x, "i j -> i", "mean")', "x.mean(1)", "ij/:j~ij >> +ij~i"),
    ("largest of each row", "x", "x.max(1)", "", 'reduce(x, "i j -> i", "max")', "x.amax(1)", ">ij~i"),
    ("where the largest is", "x", "x.argmax(1)", "", "", "x.argmax(1)", ">@ij~i"),
    ("product of each row", "x", "x.prod(1)", "", 'reduce(x, "i j -> i", "prod")', "x.prod(1)", "*ij~i"),
    ("sum of two arrays", "x x", "x + x", "", "", "x + x", "ij+ij~ij"),
    ("a row added to each row", "x b", "x + b", "", "", "x + b", "ij+j~ij"),
    ("each row times a number", "x a", "x * a[:, None]", "ij,i->ij", "", "x * a[:, None]", "ij*i~ij"),
    ("exponential", "x", "np.exp(x)", "", "", "torch.exp(x)", "^ij~ij"),
    ("logarithm", "x", "np.log(x)", "", "", "torch.log(x)", "$ij~ij"),
    ("relu", "x", "np.maximum(x, 0)", "", "", "torch.relu(x)", ">ij~ij"),
    ("negative", "x", "-x", "", "", "-x", "-ij~ij"),
    ("a power", "x", "x ** 2", "", "", "x ** 2", "(I | 2) >> ij^.~ij"),
    ("square root", "x", "np.sqrt(x)", "", "", "torch.sqrt(x)", "(I | 0.5) >> ij^.~ij"),
    ("comparison", "x b", "x > b", "", "", "x > b", "ij>>j~ij"),
    ("larger of two", "x b", "np.maximum(x, b)", "", "", "torch.maximum(x, b)", "ij>j~ij"),
    ("transpose", "x", "x.T", "ij->ji", 'rearrange(x, "i j -> j i")', "x.T", "ij~ji"),
    ("one axis to the front", "t", "t.transpose(2, 0, 1)", "nij->jni", 'rearrange(t, "n i j -> j n i")',
     "t.permute(2, 0, 1)", "nij~jni"),
    ("flatten", "x", "x.reshape(-1)", "", 'rearrange(x, "i j -> (i j)")', "x.flatten()", 'einx.id("i j -> (i j)")'),
    ("repeat a row", "b", "np.tile(b, (3, 1))", "", 'repeat(b, "j -> i j", i=3)', "b.repeat(3, 1)",
     'einx.id("j -> 3 j")'),
    ("matrix product", "x y", "x @ y", "ij,jk->ik", 'einsum(x, y, "i j, j k -> i k")', "x @ y",
     "ij*jk~ijk >> +ijk~ik"),
    ("matrix times vector", "x b", "x @ b", "ij,j->i", 'einsum(x, b, "i j, j -> i")', "x @ b", "ij*j~ij >> +ij~i"),
    ("batch of products", "t u", "t @ u", "nij,njk->nik", 'einsum(t, u, "n i j, n j k -> n i k")', "t @ u",
     "nij*njk~nijk >> +nijk~nik"),
    ("rows times rows", "q k", "q @ k.T", "id,jd->ij", 'einsum(q, k, "i d, j d -> i j")', "q @ k.T",
     "id*jd~ijd >> +ijd~ij"),
    ("inner product", "a a", "a @ a", "i,i->", 'einsum(a, a, "i, i ->")', "a @ a", "i*i~i >> +i~."),
    ("outer product", "a b", "np.outer(a, b)", "i,j->ij", 'einsum(a, b, "i, j -> i j")', "torch.outer(a, b)",
     "i*j~ij"),
    ("diagonal", "s", "np.diag(s)", "ii->i", "", "torch.diag(s)", "ii~i"),
    ("trace", "s", "np.trace(s)", "ii->", "", "torch.trace(s)", "ii~."),
    ("clip", "x", "np.clip(x, 0.2, 0.8)", "", "", "x.clamp(0.2, 0.8)",
     'elementwise("f: x -> min(max(x, 0.2), 0.8)")'),
    ("choose by a condition", "x", "np.where(x > 0.5, x, 0)", "", "", "torch.where(x > 0.5, x, 0)",
     'elementwise("f: x -> where(gt(x, 0.5), x, 0)")'),
    ("sort each row", "x", "np.sort(x, 1)", "", "", "x.sort(1)[0]", 'einx.sort("i [j]")'),
    ("order of each row", "x", "np.argsort(x, 1)", "", "", "x.argsort(1)", 'einx.argsort("i [j]")'),
    ("two largest of each row", "x", "np.sort(x, 1)[:, :-3:-1]", "", "", "x.topk(2)[0]",
     'einx.sort("i [j]") >> einx.flip("i [j]") >> i(j:2)~ij'),
    ("flip each row", "x", "np.flip(x, 1)", "", "", "x.flip(1)", 'einx.flip("i [j]")'),
    ("roll each row", "x", "np.roll(x, 1, 1)", "", "", "x.roll(1, 1)", 'einx.roll("i [j]", shift=(1,))'),
    ("pad each row with 0", "x", "np.pad(x, ((0, 0), (1, 2)))", "", "", "torch.nn.functional.pad(x, (1, 2))",
     '(0 | I | 0) >> einx.id(", i j, -> i (1 + j + 2)")'),
    ("cumulative sum", "v", "np.cumsum(v)", "", "", "v.cumsum(0)",
     "(I & I) >> ((I | 0) >> i^.~i | I) >> i*j[j<=i]~ij >> +ij~i"),
    ("lower triangle", "s", "np.tril(s)", "", "", "torch.tril(s)", "ij[j<=i]~ij"),
    ("one row", "x", "x[0]", "", "", "x[0]", "0j~j"),
    ("rows by index", "ids x", "x[ids]", "", "", "x[ids]", "n@ij~nj"),
    ("elements by index", "ids v", "np.take(v, ids)", "", "", "v.gather(0, ids)", "n@i~n"),
    ("add elements by index", "v ids w", "v + np.bincount(ids, w, 9)", "", "", "v.index_add(0, ids, w)",
     'einx.add_at("[n], m, m -> [n]")'),
    ("one-hot", "ids", "np.eye(5)[ids]", "", "", "torch.eye(5)[ids]", "i==@(c:5)~ic >> f32"),
    ("softmax of each row", "x", "np.exp(x) / np.exp(x).sum(1, keepdims=True)", "", "", "x.softmax(1)",
     "(I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij"),
    ("correlation", "v w", 'np.correlate(v, w, "valid")', "", "", "", "(i+k)*k~ik >> +ik~i"),
    ("sums of windows", "v", 'np.convolve(v, np.ones(3), "valid")', "", "", "v.unfold(0, 3, 1).sum(1)", "+(i+k:3)~i"),
    ("any, all", "x b", "(x > b).any(1)", "", "", "(x > b).any(1)", "ij>>j~ij >> ||ij~i"),
    ("0 to 9", "", "np.arange(10)", "", "", "torch.arange(10)", "@(i:10)~i"),
)  # fmt: skip


def rows_of(word: str) -> list[Row]:
    """The programs whose spelling in NumPy or PyTorch has a word, such as ``argmax``."""
    import re

    return [row for row in ROWS if word in re.findall(r"[A-Za-z_]\w*", f"{row[2]} {row[5]}")]


def cheat_sheet(column: int, word: str = "") -> str:
    """The programs in the spelling of one system, and in ours; with a word, those whose spelling has it."""
    from ilang.core.explain.page import table

    rows = [row for row in (rows_of(word) if word else ROWS) if row[2 + column]]
    head = ("", SYSTEMS[column], "i")
    return table([head, *((row[0], row[2 + column], row[6]) for row in rows)], "   ")


def page() -> str:
    """The table of docs/cheatsheet.md."""
    heads = ("", *SYSTEMS, "`i`")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for title, _, *spellings in ROWS:
        cells = [f"`{each}`".replace("|", "\\|") if each else "" for each in spellings]
        lines.append(f"| {' | '.join((title, *cells))} |")
    return "\n".join(lines) + "\n"
