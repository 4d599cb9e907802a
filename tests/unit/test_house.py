"""The house rules, read off the source: layers, sizes, words, links.

Nothing of the product is imported; everything is a scan of the tree as it stands.
"""

import ast
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("core", "codegen", "icli")  # each may import itself and what stands before it
MODULE_LINES = 600
FUNCTION_LINES = 70

# Who may import what: a package, and the folders or files that may.
RESERVED = {
    "cffi": ("codegen/",),
    "click": ("icli/",),
    "numpy": ("core/reference.py", "codegen/", "icli/", "ilang/"),
    "prompt_toolkit": ("icli/",),
    "rich": ("icli/",),
    "subprocess": ("codegen/",),
}
# The core talks to no file, process, clock or terminal.
OUTSIDE_MODULES = {
    *("datetime", "glob", "io", "logging", "os", "pathlib", "random", "secrets", "shutil"),
    *("socket", "subprocess", "sys", "tempfile", "threading", "time", "urllib"),
}
OUTSIDE_CALLS = {"breakpoint", "exit", "input", "open", "print", "quit"}

# What is chosen, lowered and written holds for a machine: its numbers are fields of core/machine.py.
FOR_MACHINES = (
    *("core/schedule/", "core/passes/", "core/lower/", "core/transform/"),
    *("core/cost.py", "codegen/targets/"),
)
OF_PROCESSORS = re.compile(
    r"\b(bytes?|[KM]i?B|banks?|blocks?|caches?|copied|lines?|vectors?|registers?|pages?|threads?|lanes?|cores|warps?)\b",
    re.IGNORECASE,
)

TEXT = {
    *("", ".bash", ".c", ".console", ".cu", ".fish", ".h"),
    *(".i", ".json", ".md", ".mk", ".py", ".sh", ".toml", ".txt", ".zsh"),
}
UNFINISHED = re.compile("|".join((r"\bTO" + "DO\\b", r"\bFIX" + "ME\\b", r"\bX{3}\b")))
MACHINE = re.compile(r"(?<![\w./])/(?:work|root|home|Users)/[\w.]")
OUTSIDE_CHECKOUT = re.compile(r"\.\./(?:\.\./)*shared\b")
# Where a word that gave way (icli/glossary.md) has another sense: what a stopped call jumps to.
MAY_SAY = {
    "landing": (
        "codegen/call/stopping.c",
        "codegen/call/stopping.py",
        "codegen/targets/headers/stop.h",
    )
}
PRONOUNS = {
    *("found", "gone", "here", "its", "made", "mine", "ours", "own", "said", "theirs", "there"),
    *("does", "has", "have", "told", "what", "where", "who"),
}
NO_SUBJECT = re.compile(r"(What|How|Where|Which|When|Who|Why|That|Those|It|They|Its|Their)\b")
# What a later sentence begins with that leaves its subject to an earlier one; ``None`` may be the value.
NO_NOUN = re.compile(
    r"(He|It|Its|She|That|Their|These|They|This|Those)\b"
    r"|(All|Another|Any|Any other|Both|Each|Neither|One|Others?|Some|Two) "
    r"(add|are|can|differ|do|does|gets?|gives?|has|have|holds?|is|leaves|may|stands?|starts|takes?|where)\b"
    r"|(All|Any|Both|Each|Most|Neither|None|One|Some|Two) of (it|them|these|this|those)\b"
    r"|(Any|Each|One|Others|Some) (that|which|with|without)\b|One ``"
)
BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])[\"')`]*\s+(?=[A-Z])")
# Names of classes that several modules have: one concept of two texts or of two IRs, or the public name of one.
SHARED_NAMES = {
    *("Assignment", "Axis", "Custom", "Einx", "Entry", "Expression"),
    *("Function", "Input", "Lookup", "Number", "Position", "Program", "Read", "Routine", "Setting"),
    *("SessionText", "SessionsText", "Tensor", "View"),
}
MAY_NAME_OUTSIDE = ("tests/conformance/", ".ci/")
FENCED = re.compile(r"^([ \t]*)(`{3,}|~{3,}).*?^\1\2", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"(`+).+?\1", re.DOTALL)
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)")


def files() -> Iterator[Path]:
    """Every file of the repository, links not followed, nothing made by a tool."""
    for folder, folders, names in os.walk(ROOT):
        made = {"__pycache__", *(("build", "dist", "out") if Path(folder) == ROOT else ())}
        folders[:] = sorted(
            name
            for name in folders
            if (name == ".ci" or not name.startswith("."))
            and name not in made
            and not name.endswith(".egg-info")
        )
        yield from (Path(folder, name) for name in sorted(names) if name != ".git")


@cache
def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


FILES = list(files())
PYTHON = [path for path in FILES if path.suffix == ".py"]
PRODUCT = [path for path in PYTHON if name_of(path).startswith((*LAYERS, "ilang/"))]
SHIPPED = [path for path in PYTHON if not name_of(path).startswith("tests/")]
PAGES = [path for path in FILES if path.suffix == ".md"]


@cache
def text_of(path: Path) -> str:
    return path.read_text("utf-8", "replace")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), name_of(path))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree_of(path)))


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Dotted names of what a file imports, `from a import b` as both `a` and `a.b`."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno} imports relatively"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer_breaks(path: Path) -> Iterator[str]:
    layer = path.relative_to(ROOT).parts[0]
    if layer not in LAYERS:
        return
    allowed = LAYERS[: LAYERS.index(layer) + 1]
    for name in imports(path):
        top, *rest = name.split(".")
        if top in LAYERS:
            yield f"{name_of(path)} imports {name} by its bare name"
        if top == "ilang" and rest and rest[0] in LAYERS and rest[0] not in allowed:
            yield f"{name_of(path)} imports {name}"
        if top == "ilang" and rest and rest[0] not in LAYERS and layer != "icli":
            yield f"{name_of(path)} imports {name} from the public face above it"


def outside_uses(path: Path) -> Iterator[str]:
    for name in imports(path):
        if name.split(".")[0] in OUTSIDE_MODULES:
            yield f"{name_of(path)} imports {name}"
    for node in nodes_of(path):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Name) and called.id in OUTSIDE_CALLS:
            yield f"{name_of(path)}:{called.lineno} calls {called.id}()"


def none_of(found: list[str]) -> None:
    """Fail with every finding, one a line."""
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def test_every_package_is_looked_at() -> None:
    folders = {path.parent.name for path in PRODUCT if path.parent.parent == ROOT / "core"}
    packages = {path.parent.name for path in (ROOT / "core").glob("*/__init__.py")}
    assert "build" in packages
    assert folders == packages


def test_links_lead_to_the_layers() -> None:
    for layer in LAYERS:
        link = ROOT / "ilang" / layer
        assert link.is_symlink(), f"ilang/{layer} is not a link: see docs/decisions/0001-layout.md"
        assert link.readlink().as_posix() == f"../{layer}"


def test_layers_import_downwards() -> None:
    none_of([line for path in PRODUCT for line in layer_breaks(path)])


@pytest.mark.parametrize("package", sorted(RESERVED))
def test_packages_stay_in_their_layer(package: str) -> None:
    none_of(
        [
            name_of(path)
            for path in PRODUCT
            if not name_of(path).startswith(RESERVED[package])
            and any(name.split(".")[0] == package for name in imports(path))
        ]
    )


def test_core_keeps_to_itself() -> None:
    core = [path for path in PRODUCT if name_of(path).startswith("core/")]
    none_of([line for path in core for line in outside_uses(path)])


def test_irs_know_no_step() -> None:
    steps = tuple(f"ilang.core.{name}" for name in ("check", "infer", "passes", "schedule"))
    none_of(
        [
            f"{name_of(path)} imports {name}"
            for path in PRODUCT
            if name_of(path).startswith("core/ir/")
            for name in imports(path)
            if name.startswith(steps)
        ]
    )


def passes_but(*names: str) -> list[str]:
    """Every pass and every part of one, but for some, under ``core``."""
    names = ("__init__", "__pycache__", *names)
    stems = (path.stem for path in (ROOT / "core" / "passes").iterdir())
    return [f"passes.{stem}" for stem in sorted(stems) if stem not in names]


# Inside of a layer: the folder, and what it never imports.
INSIDE = {
    "codegen/targets/": (
        *(f"ilang.codegen.{folder}" for folder in ("call", "compile", "components", "device")),
        *(f"ilang.codegen.{folder}" for folder in ("frameworks", "project", "session", "system")),
        *(f"ilang.core.{name}" for name in ("infer", "notation", "passes", "schedule")),
    ),
    "core/build/": tuple(
        f"ilang.core.{name}" for name in ("check", "infer", "lower", "passes", "schedule")
    )
    + tuple(  # a string that is an argument is a specification where what is called says so
        f"ilang.core.notation.{path.stem}"
        for path in (ROOT / "core" / "notation").iterdir()
        if path.stem not in ("__init__", "__pycache__", "einsum")
    ),
    "core/schedule/": tuple(
        f"ilang.core.{name}" for name in ("build", "check", "infer", "lower", "passes", "pipeline")
    ),
    "core/schedule/choose/": ("ilang.core.schedule.accumulation", "ilang.core.schedule.instances"),
    "core/passes/": (
        "ilang.core.build",
        "ilang.core.pipeline",
        "ilang.core.schedule",  # what is chosen is in the value
    ),
    "core/check/": tuple(  # what verifies what a step gives asks nothing of the step
        f"ilang.core.{name}"
        for name in (
            "build",
            "lower",
            "notation",
            "pipeline",
            "schedule",
            *passes_but("gpu", "independence"),  # barriers of a block are found anew
        )
    ),
    "core/explain/": tuple(
        f"ilang.core.{name}"
        for name in (
            "build",
            "check",
            "lower",
            "pipeline",
            "schedule.choose",
            *passes_but("einx", "einx_to_graph"),  # the operations of a call are what it became
        )
    ),
    "core/lower/": tuple(
        f"ilang.core.{name}" for name in ("build", "check", "infer", "notation", "schedule")
    ),
    "core/notation/": tuple(
        f"ilang.core.{name}"
        for name in (
            "build",
            "check",
            "explain",
            "infer",
            "lower",
            "passes",
            "schedule",
            "transform",
        )
    ),
    "core/transform/": tuple(
        f"ilang.core.{name}"
        for name in ("build", "lower", "notation", "passes", "pipeline", "schedule")
    ),
    "core/infer/": tuple(
        f"ilang.core.{name}"
        for name in ("build", "check", "lower", "notation", "passes", "schedule")
    ),
}


def test_what_explains_is_asked_by_the_pipeline_alone() -> None:
    """No step depends on how it is shown; a record may give its own page."""
    may = ("core/explain/", "core/pipeline.py")
    none_of(
        [
            f"{name_of(path)} imports {name}"
            for path in PRODUCT
            if name_of(path).startswith("core/") and not name_of(path).startswith(may)
            for name in imports(path)
            if name.startswith("ilang.core.explain")
        ]
    )


@pytest.mark.parametrize("folder", sorted(INSIDE))
def test_folders_import_downwards(folder: str) -> None:
    none_of(
        [
            f"{name_of(path)} imports {name}"
            for path in PRODUCT
            if name_of(path).startswith(folder)
            for name in imports(path)
            if name.startswith(INSIDE[folder])
        ]
    )


def imported_at_once(path: Path) -> Iterator[str]:
    """Dotted names of what is imported with a file: not inside its functions, nor for types alone."""
    for s in tree_of(path).body:
        if isinstance(s, ast.Import):
            yield from (alias.name for alias in s.names)
        elif isinstance(s, ast.ImportFrom):
            yield s.module or ""
            yield from (f"{s.module}.{alias.name}" for alias in s.names)


def module_name(path: Path) -> str:
    """The dotted name of a module of the product."""
    name = name_of(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return name if name.split(".")[0] == "ilang" else f"ilang.{name}"


def circle_in(arrows: Mapping[str, set[str]]) -> list[str]:
    """Names each of which leads to another of them, if there are any."""
    left = {name: set(onto) for name, onto in arrows.items()}
    while ends := {name for name, onto in left.items() if not onto & left.keys()}:
        left = {name: onto for name, onto in left.items() if name not in ends}
    return sorted(left)


def test_no_modules_import_each_other_at_once() -> None:
    """Nor do folders: what is inside one is imported by another, or imports it, and never both."""
    modules = {module_name(path): path for path in PRODUCT}
    arrows = {
        name: {each for each in imported_at_once(path) if each in modules and each != name}
        for name, path in modules.items()
    }
    assert circle_in(arrows) == []
    folders: dict[str, set[str]] = {}
    for name, onto in arrows.items():
        path = modules[name].parent.relative_to(ROOT).as_posix()
        others = {modules[each].parent.relative_to(ROOT).as_posix() for each in onto} - {path}
        inner = {each for each in others if not each.startswith(path) and not path.startswith(each)}
        folders.setdefault(path, set()).update(inner)
    assert circle_in(folders) == []


def test_targets_recognise_nothing_by_identity() -> None:
    """What a target prints is data that compares; nothing is found again by the place of an object in memory."""
    none_of(
        [
            f"{name_of(path)}:{node.lineno} calls id()"
            for path in PRODUCT
            if name_of(path).startswith("codegen/targets/")
            for node in nodes_of(path)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "id"
        ]
    )


def test_the_public_face_needs_no_command_line() -> None:
    none_of(
        [
            f"{name_of(path)} imports {name}"
            for path in PRODUCT
            if name_of(path).startswith("ilang/") and path.name != "__main__.py"
            for name in imports(path)
            if name.startswith("ilang.icli")
        ]
    )


def test_modules_are_short() -> None:
    lengths = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in SHIPPED}
    none_of(
        [f"{name} has {lines} lines" for name, lines in lengths.items() if MODULE_LINES < lines]
    )


def test_functions_are_short() -> None:
    none_of(
        [
            f"{name_of(path)}:{node.lineno} {node.name} has {lines} lines"
            for path in SHIPPED
            for node in nodes_of(path)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and FUNCTION_LINES < (lines := (node.end_lineno or node.lineno) - node.lineno + 1)
        ]
    )


def is_number(node: ast.AST | None) -> bool:
    """Whether an expression is numbers alone, none of which is below 0."""
    match node:
        case ast.Constant():
            return isinstance(node.value, int | float) and not isinstance(node.value, bool)
        case ast.BinOp():
            return is_number(node.left) and is_number(node.right)
        case ast.Tuple() | ast.List():
            return bool(node.elts) and all(map(is_number, node.elts))
        case ast.Dict():
            return bool(node.values) and all(map(is_number, node.values))
        case _:
            return False


def test_numbers_of_processors_are_of_machines() -> None:
    """A numeric constant of what is for a machine says what it counts, and that is no unit of a processor."""
    found = []
    for path in PRODUCT:
        body = tree_of(path).body if name_of(path).startswith(FOR_MACHINES) else []
        for s, after in pairwise(body):
            if not isinstance(s, ast.Assign | ast.AnnAssign) or not is_number(s.value):
                continue
            doc = after.value if isinstance(after, ast.Expr) else None
            says = str(doc.value) if isinstance(doc, ast.Constant) else ""
            if not says or OF_PROCESSORS.search(says):
                found.append(f"{name_of(path)}:{s.lineno} {says or 'a number without a docstring'}")
    none_of(found)


def test_every_module_says_what_it_is() -> None:
    none_of([name_of(path) for path in PYTHON if not ast.get_docstring(tree_of(path))])


def lines_with(
    pattern: re.Pattern[str], allowed: tuple[str, ...] = (), word: str = ""
) -> list[str]:
    """The lines that match a pattern, of the files that have a ``word`` in small letters, which is quick to see."""
    return [
        f"{name_of(path)}:{number} {line.strip()}"
        for path in FILES
        if path.suffix in TEXT and not name_of(path).startswith((*allowed, "LICENSE"))
        if word in lowered(path)
        for number, line in enumerate(text_of(path).splitlines(), start=1)
        if pattern.search(line)
    ]


@cache
def lowered(path: Path) -> str:
    return text_of(path).lower()


def test_nothing_is_left_for_later() -> None:
    none_of(lines_with(UNFINISHED))


def words_that_gave_way() -> list[str]:
    """The words of the last table of the glossary, as they stood in identifiers and prose."""
    page = (ROOT / "icli/glossary.md").read_text("utf-8").partition("| no longer | but |")[2]
    return re.findall(r"^\| (\w+) \|", page, re.MULTILINE)


def test_words_that_gave_way() -> None:
    words = words_that_gave_way()
    assert {"staircase", "landing", "crew"} <= set(words)
    for word in words:
        pattern = re.compile(rf"(?<![a-z]){word}s?(?![a-z])", re.IGNORECASE)
        none_of(
            lines_with(
                pattern,
                ("icli/glossary.md", "tests/unit/test_house.py", *MAY_SAY.get(word, ())),
                word.lower(),
            )
        )


def bound_names(path: Path) -> Iterator[tuple[int, str]]:
    """Every variable, parameter and field that a module binds, with its line."""
    for node in nodes_of(path):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case _:
                continue


def without_help(path: Path) -> Iterator[str]:
    """The errors with a written code that say what is wrong, and not what to do; types forbid None."""
    for node in nodes_of(path):
        if not isinstance(node, ast.Call) or not node.args or 4 <= len(node.args):
            continue
        code = node.args[0]
        coded = isinstance(code, ast.Constant) and re.fullmatch(r"E\d{4}", str(code.value))
        spread = any(isinstance(each, ast.Starred) for each in node.args)
        told = any(word.arg in ("help", None) for word in node.keywords)
        family = getattr(node.func, "id", "")
        if (
            family.endswith("Error")
            and family != "InternalError"
            and coded
            and not spread
            and not told
        ):
            yield f"{name_of(path)}:{node.lineno}"


def test_errors_say_what_to_do() -> None:
    none_of([place for path in SHIPPED for place in without_help(path)])


def test_names_say_what_they_hold() -> None:
    """A pronoun leaves to the reader what it stands for: two of them in one function are a riddle."""
    none_of(
        [
            f"{name_of(path)}:{line} calls something {name}"
            for path in PRODUCT
            for line, name in bound_names(path)
            if name.strip("_") in PRONOUNS
            and (name_of(path), name) != ("ilang/einx.py", "where")  # NumPy's name
        ]
    )


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """The docstrings of a module, of what it defines, and of its variables and fields, each with its line."""
    for node in nodes_of(path):
        match node:
            case ast.Expr(value=ast.Constant(value=str(says))):
                yield node.lineno, says
            case _:
                continue


def test_docstrings_name_their_subject() -> None:
    """A noun says what a thing is; a question or a pronoun leaves that to the reader."""
    none_of(
        [
            f"{name_of(path)}:{line} {says.splitlines()[0]}"
            for path in PRODUCT
            for line, says in docstrings(path)
            if NO_SUBJECT.match(says)
        ]
    )


def later_sentences(says: str) -> list[str]:
    """The sentences of a docstring after its first one, each on one line."""
    parts = re.split(r"\n\s*\n(?:\s*- )?|\n\s*- ", says)
    return [each for part in parts for each in BETWEEN_SENTENCES.split(" ".join(part.split()))][1:]


def test_later_sentences_name_their_subject() -> None:
    none_of(
        [
            f"{name_of(path)}:{line} {sentence}"
            for path in PRODUCT
            for line, says in docstrings(path)
            for sentence in later_sentences(says)
            if NO_NOUN.match(sentence)
        ]
    )


def test_later_sentences_are_told_apart() -> None:
    says = "A 1.5, say. It is read (or so.) None where\nit is.\n\n    - Each stands\n      by it.\n    - No more."
    assert {sentence: bool(NO_NOUN.match(sentence)) for sentence in later_sentences(says)} == {
        "It is read (or so.": True,
        "None where it is.": False,
        "Each stands by it.": True,
        "No more.": False,
    }


def test_classes_of_different_things_have_different_names() -> None:
    modules: dict[str, set[str]] = {}
    for path in PRODUCT:
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef):
                modules.setdefault(node.name, set()).add(name_of(path))
    several = {name: sorted(paths) for name, paths in modules.items() if 1 < len(paths)}
    none_of(
        [f"{name}: {', '.join(several[name])}" for name in sorted(several.keys() - SHARED_NAMES)]
    )
    assert several.keys() >= SHARED_NAMES


def test_no_path_of_one_machine() -> None:
    none_of(lines_with(MACHINE))


def test_nothing_reaches_outside_the_checkout() -> None:
    none_of(lines_with(OUTSIDE_CHECKOUT, MAY_NAME_OUTSIDE))


def test_files_that_texts_of_the_product_name_exist() -> None:
    endings = {"/" + name_of(path) for path in FILES}
    none_of(
        [
            f"{name_of(path)} names {word}"
            for path in SHIPPED
            for word in set(re.findall(r"(?<![\w./{])[A-Za-z][\w/-]*\.(?:py|md)\b", text_of(path)))
            if not any(each.endswith("/" + word) for each in endings)
        ]
    )


def test_links_in_pages_resolve() -> None:
    broken = []
    for page in PAGES:
        prose = CODE.sub("", FENCED.sub("", page.read_text("utf-8")))
        for target in LINK.findall(prose):
            if re.match(r"[a-z]+:|#", target):
                continue
            if not (page.parent / target.split("#")[0]).exists():
                broken.append(f"{name_of(page)} links to {target}")
    none_of(broken)
