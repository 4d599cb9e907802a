"""Handwritten digits, end to end: `digits.i` to C, to a library, to a program that reads.

    python samples/digits/demo.py

Builds in `build/digits`.  Exit status: 0 all is well; 1 a wrong result; 3 a tool is missing
or failed; 130 interrupted.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple, NoReturn

try:
    import numpy as np
    from train import Floats, Labels, Split, Weights, forward, load_split
except ModuleNotFoundError as missing:
    print(f"demo: {missing}\nhelp: pip install numpy", file=sys.stderr)
    raise SystemExit(3) from None

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "digits"
DRIVER = "classify"
REPETITIONS = 100
ROUNDS = 5
LEAST_ACCURACY = 0.95
MOST_DIFFERENCE = 1e-4  # between the probabilities of C and of NumPy
SHADES, PLAIN_SHADES = " ░▒▓█", " .:+#"
PICTURES, MISTAKES = 4, 2


def fail(message: str, *help_lines: str, status: int = 3) -> NoReturn:
    """Say on standard error what is wrong and what to do, and leave."""
    sys.stdout.flush()
    print(f"demo: {message}", *(f"help: {line}" for line in help_lines), sep="\n", file=sys.stderr)
    raise SystemExit(status)


class Tools(NamedTuple):
    """The commands that turn C into programs, as argument lists."""

    make: str
    cc: list[str]
    variables: list[str]  # what make is told: CC=…, and AR=… where the system has none


class Reading(NamedTuple):
    """What a C program said: probabilities `[n, 10]`; medians of seconds per call, of NumPy's, and of their ratio."""

    probabilities: Floats
    seconds: float
    numpy_seconds: float
    ratio: float


def heading(number: int, text: str) -> None:
    """Print the heading of a step."""
    print(f"\n{number}  {text}\n", flush=True)


def short(path: Path) -> str:
    """A path as seen from the root of the repository."""
    return path.relative_to(ROOT).as_posix()


def capture(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command in the root of the repository and keep what it prints."""
    return subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True, errors="replace"
    )


def run(command: list[str], shown: str | None = None) -> str:
    """Show a command, run it in the root of the repository and return what it printed."""
    text = shown or shlex.join(command)
    print(f"   $ {text}", flush=True)
    done = capture(command)
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        fail(f"`{text}` failed with exit status {done.returncode}; what it said is above")
    return done.stdout


def find_compiler() -> list[str]:
    """The C compiler: `$CC`, else cc, gcc or clang, else the one in the ziglang package."""
    wanted = shlex.split(os.environ.get("CC", ""))
    if wanted:
        if shutil.which(wanted[0]) is None:
            fail(f"CC names `{wanted[0]}`, which is not there", "unset CC, or name another one")
        return wanted
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    fail(
        "no C compiler was found: looked for $CC, cc, gcc, clang and the ziglang package",
        "apt install gcc, or xcode-select --install, or pip install ziglang",
    )


def find_tools() -> Tools:
    """Find everything that the demo runs, before it starts."""
    tried = capture([sys.executable, "-m", "ilang", "--version"])
    if tried.returncode:
        why = (tried.stderr.strip().splitlines() or ["it says nothing"])[-1]
        fail(f"`python -m ilang` does not run here: {why}", f"pip install {shlex.quote(str(ROOT))}")
    make = shutil.which("make") or shutil.which("gmake")
    if make is None:
        fail("make is missing", "apt install make, or xcode-select --install")
    cc = find_compiler()
    variables = [f"CC={shlex.join(cc)}"]
    if shutil.which("ar") is None and cc[-2:] == ["ziglang", "cc"]:
        variables.append(f"AR={shlex.join([*cc[:-1], 'ar'])}")
    return Tools(Path(make).name, cc, variables)


def load_weights() -> Weights:
    """`w1 [48, 64]`, `b1 [48]`, `w2 [10, 48]`, `b2 [10]`, as `train.py` left them."""
    path = HERE / "weights.npz"
    if not path.exists():
        fail(f"{short(path)} is missing", f"python {short(HERE / 'train.py')}", status=1)
    with np.load(path) as stored:
        return {name: stored[name] for name in ("w1", "b1", "w2", "b2")}


def generate() -> None:
    """Compile `digits.i` to a C project in the build folder."""
    options = ["build", short(HERE / "digits.i"), "--target", "c", "-o", short(BUILD)]
    run([sys.executable, "-m", "ilang", *options], shown=shlex.join(["i", *options]))
    for path in sorted(p for p in BUILD.iterdir() if p.suffix in {".c", ".h"}):
        print(f"   {path.name:16} {path.read_text(encoding='utf-8').count(chr(10)):5,} lines")


def make_library(tools: Tools) -> None:
    """Build the library anew and run the test that was generated with it."""
    make = [tools.make, "-s", "-C", short(BUILD)]
    run([*make, "clean"])
    run([*make, *tools.variables])
    output = run([*make, *tools.variables, "test"])
    for line in output.splitlines():
        if not line.startswith(tools.make):  # "make: Entering directory"
            print(f"   {line}")


def compile_driver(tools: Tools) -> None:
    """Compile `classify.c` and link it with the generated static library."""
    archive, driver = BUILD / "libdigits.a", BUILD / DRIVER
    if not archive.exists():
        fail(f"make left no {short(archive)}")
    flags = ["-std=c99", "-O2", "-Wall", "-Wextra", f"-I{short(BUILD)}"]
    sources = [short(HERE / "classify.c"), short(archive)]
    run([*tools.cc, *flags, *sources, "-lm", "-o", short(driver)])


def classify(x: Floats, w: Weights) -> Reading:
    """Send the images `x [n, 64]` and the weights through the C program."""
    given, found = BUILD / "input.bin", BUILD / "output.bin"
    with given.open("wb") as file:
        file.write(np.int64(len(x)).tobytes())
        for array in (w["w1"], w["b1"], w["w2"], w["b2"], x):
            file.write(array.astype(np.float32).tobytes())
    driver = [f"./{short(BUILD / DRIVER)}", short(given), short(found), str(REPETITIONS)]
    outputs: list[str] = []
    numpy_seconds: list[float] = []
    for _ in range(ROUNDS):  # one after the other, so that what slows the machine slows both
        outputs.append(run(driver))
        numpy_seconds.append(time_numpy(x, w))
    print(f"   {outputs[-1].strip()}")
    probabilities = np.fromfile(found, np.float32).reshape(len(x), -1)
    seconds = [float(output.split()[-1]) for output in outputs]
    ratios = [n / s if s else float("inf") for n, s in zip(numpy_seconds, seconds, strict=True)]
    return Reading(probabilities, median(seconds), median(numpy_seconds), median(ratios))


def shades() -> str:
    """Five characters from blank to full that the terminal can show."""
    try:
        SHADES.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return PLAIN_SHADES
    return SHADES


def draw(images: Floats, captions: list[str]) -> None:
    """Print the images `[k, 64]` side by side, two characters a pixel, with captions."""
    ink = shades()
    levels = np.rint(images.reshape(len(images), 8, 8) * (len(ink) - 1)).astype(int)
    for y in range(8):
        rows = ["".join(ink[level] * 2 for level in image[y]) for image in levels]
        print(("   " + "   ".join(rows)).rstrip())
    print(("   " + "   ".join(f"{caption:16}" for caption in captions)).rstrip() + "\n")


def show(data: Split, probabilities: Floats) -> None:
    """Draw some held-back images that were read rightly, and some that were not."""
    answers: Labels = probabilities.argmax(axis=1)
    right = np.flatnonzero(answers == data.held_y)[:PICTURES]
    wrong = np.flatnonzero(answers != data.held_y)[:MISTAKES]

    def caption(n: int) -> str:
        return f"read {answers[n]}, {probabilities[n].max():.0%}"

    draw(data.held_x[right], [caption(n) for n in right])
    if len(wrong):
        draw(data.held_x[wrong], [f"{caption(n)}, is {data.held_y[n]}" for n in wrong])


def time_numpy(x: Floats, w: Weights) -> float:
    """The median seconds of NumPy's forward pass over `x [n, 64]`."""
    forward(x, w)
    seconds: list[float] = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        forward(x, w)
        seconds.append(time.perf_counter() - start)
    return median(seconds)


def judge(data: Split, w: Weights, reading: Reading) -> None:
    """Print accuracy, agreement and speed; leave with status 1 if a result is wrong."""
    n = len(data.held_y)
    wanted = forward(data.held_x, w)[1]
    difference = float(np.abs(reading.probabilities - wanted).max())
    hits = int(np.sum(reading.probabilities.argmax(axis=1) == data.held_y))
    print(f"   accuracy     {hits / n:.2%}, {hits} of {n} images never trained on")
    print(f"   difference   {difference:.1e} at most, from NumPy's probabilities")
    spent = f"{reading.seconds * 1e3:.3f} ms for the {n} images"
    print(f"   C            {spent}: NumPy / C = {reading.ratio:.2f}, the median of {ROUNDS}")
    print(f"   NumPy        {reading.numpy_seconds * 1e3:.3f} ms for the same")
    if not difference <= MOST_DIFFERENCE:
        fail(f"C and NumPy differ by more than {MOST_DIFFERENCE:g}", status=1)
    if hits / n < LEAST_ACCURACY:
        fail(f"the accuracy is below {LEAST_ACCURACY:.0%}", status=1)


def main() -> None:
    """Run the five steps."""
    tools = find_tools()
    data, w = load_split(), load_weights()
    BUILD.mkdir(parents=True, exist_ok=True)
    heading(1, "Compile the model to C")
    generate()
    heading(2, "Build the library, run its own test, compile a program that calls it")
    make_library(tools)
    compile_driver(tools)
    heading(3, f"Read {len(data.held_y)} images that were held back from training")
    reading = classify(data.held_x, w)
    heading(4, "Some of them")
    show(data, reading.probabilities)
    heading(5, "The result")
    judge(data, w, reading)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nobody reads on: no error at exit
    except OSError as error:
        fail(str(error))
