r"""CUDA C++ to C++: the three constructs that no C++ compiler reads; lines stay where they are.

    k<<<grid, block, shared, stream>>>(x)  ->  ::cuda_emulator::Configured("k", grid, block, shared, stream)(k, x)
    __shared__ float tile[16][17];         ->  auto& tile = ::cuda_emulator::shared<float[16][17], 0>();
    extern __shared__ float tile[];        ->  float* const tile = (float*)::cuda_emulator::dynamic_shared();

Comments, strings and preprocessor lines are left alone. Constructs of another form are refused (E0920), not passed on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ilang.core.diagnostic import ToolError
from ilang.core.source import Source, Span

NO_CODE = re.compile(
    r"""(?P<number>(?<!\w)\.?\d(?:'?[\w.])*)
      | R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
      | //(?:\\\n|[^\n])* | /\*.*?\*/
      | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
      | ^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
"""Parts of a text without constructs; a number may hold quotes between its digits, and is code."""

SHARED = re.compile(r"(?P<extern>\bextern\s+)?(?:\bstatic\s+)?\b__shared__\b(?P<declared>[^;]*);")
ALIGNED = re.compile(r"\b(?:__align__|alignas)\s*\([^)]*\)")
DECLARED = re.compile(
    r"""\s*(?P<type>(?:const\s+)?[\w:]+(?:\s*<[^;]*>)?(?:\s+(?:int|long|char|short))*(?:\s*\*)*)
        (?:\s+|(?<=[*>])\s*)(?P<name>\w+)\s*(?P<dims>(?:\[[^\[\]]*\]\s*)*)""",
    re.VERBOSE,
)
KERNEL = re.compile(r"(?:::)?(?:\w+\s*::\s*)*\w+$")
NAMING = re.compile(r"[\w\s:]")
"""A character of the name of a kernel."""


_Edit = tuple[int, int, str]
"""The start and the end of a range of the text, and what takes its place."""


def translate(text: str, name: str) -> str:
    """A CUDA C++ text as C++; ``name`` is the file that findings and messages are about.

    Raises:
        ToolError: E0920 (a launch or a shared variable in a form that is not translated).
    """
    code = NO_CODE.sub(_blanked, text)
    source = Source(name, text)
    edits = [*_launches(source, code), *_shared_variables(source, code)]
    parts, at = [], 0
    for start, end, instead in sorted(edits):
        lost = text.count("\n", start, end) - instead.count("\n")
        parts += [text[at:start], instead, "\n" * lost]
        at = end
    return f'#line 1 "{_quoted(name)}"\n{"".join(parts)}{text[at:]}'


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _blanked(match: re.Match[str]) -> str:
    text = match.group()
    return text if match["number"] else re.sub(r"[^\n]", " ", text)


def _refused(source: Source, start: int, end: int, construct: str, instead: str) -> ToolError:
    return ToolError(
        "E0920", f"the emulator cannot read {construct}", Span(source, start, end), instead
    )


def _launches(source: Source, code: str) -> Iterator[_Edit]:
    at = 0
    while 0 <= (at := code.find("<<<", at)):
        close = code.find(">>>", at)
        head = _name_before(code, _before_arguments(code, at))
        if close < 0 or head is None:
            instead = "write kernel<<<grid, block, shared, stream>>>(arguments)"
            raise _refused(source, at, at + 3, "this launch", instead)
        bracket = re.compile(r"\s*\(").match(code, close + 3)
        if bracket is None:
            instead = "its arguments follow in brackets: k<<<1, 32>>>(x)"
            raise _refused(source, head.start(), close + 3, "a launch without arguments", instead)
        kernel = " ".join(source.text[head.start() : at].split())
        setting = source.text[at + 3 : close].strip()
        is_empty = re.compile(r"\s*\)").match(code, bracket.end()) is not None
        configured = f'::cuda_emulator::Configured("{_quoted(kernel)}", {setting})'
        yield head.start(), bracket.end(), f"{configured}({kernel}{'' if is_empty else ', '}"
        at = bracket.end()


def _name_before(code: str, end: int) -> re.Match[str] | None:
    """The name that ends there. Searched from its words on: from the start of the text, launch by launch, is slow."""
    start = end
    while 0 < start and NAMING.match(code, start - 1):
        start -= 1
    return KERNEL.search(code, start, end)


def _before_blanks(code: str, end: int) -> int:
    while 0 < end and code[end - 1].isspace():
        end -= 1
    return end


def _before_arguments(code: str, end: int) -> int:
    """The end of the name of a kernel: before its template arguments, if it has any."""
    end = _before_blanks(code, end)
    if not code.startswith(">", end - 1):
        return end
    depth = 0
    for at in range(end - 1, -1, -1):
        depth += (code[at] == ">") - (code[at] == "<")
        if depth == 0:
            return _before_blanks(code, at)
    return end


def _shared_variables(source: Source, code: str) -> Iterator[_Edit]:
    for number, match in enumerate(SHARED.finditer(code)):
        start, end = match.span("declared")
        plain = ALIGNED.sub(lambda align: " " * len(align.group()), code[start:end])
        declared = DECLARED.fullmatch(re.sub(r"\bvolatile\b", "        ", plain))
        if declared is None:
            instead = (
                "declare one variable at a time, without a value: __shared__ float tile[32][33];"
            )
            raise _refused(source, *match.span(), "this declaration of shared memory", instead)
        kind, name, dims = (
            declared["type"].strip(),
            declared["name"],
            "".join(declared["dims"].split()),
        )
        if match["extern"]:
            text = f"{kind}* const {name} = ({kind}*)::cuda_emulator::dynamic_shared();"
        else:
            text = f"auto& {name} = ::cuda_emulator::shared<{kind}{dims}, {number}>();"
        yield *match.span(), text
