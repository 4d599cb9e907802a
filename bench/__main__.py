"""``python -m bench``: time our programs beside every peer that is installed, and print tables.

python -m bench                              everything, on 1 thread and on all cores
python -m bench --only 'matmul,soft'         workloads whose names match one of these patterns
python -m bench --peers NumPy,PyTorch --threads 1,2 --json out.json
python -m bench --only ^step --no-latency    steps of training, beside PyTorch and JAX
python -m bench --only-calls                 what calls of small arrays cost, beside einx, einops, opt_einsum
python -m bench --page docs/benchmarks.md    rewrite the tables of a page, too
python -m bench --from out.json --page docs/benchmarks.md
python -m bench --suite drawn --seed 7       workloads drawn at random, beside NumPy, PyTorch, JAX
python -m bench --suite tccg --threads 1     a suite: drawn, tccg, polybench, convolutions, everyday; or all
python -m bench --suite all --isa avx2       as if processors had no wider vectors, for everyone
python -m bench --quick --peers NumPy        tiny sizes: does everything work and compute the right thing?
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for. Returns 1 where one of our results was wrong."""
    options = _options(arguments)
    if options.child:
        return _child(options)
    if options.suite != "anchors":
        return _suites(options)
    results = json.loads(Path(options.saved).read_text("utf-8")) if options.saved else _run(options)

    from bench import report

    print(report.text(results))
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    if options.page:
        report.rewrite(Path(options.page), report.ANCHORS, report.markdown(results))
    return _status(results)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    from bench import peers, suites

    cores = os.cpu_count() or 1
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m bench", description=__doc__, formatter_class=shape)
    parser.add_argument("--only", default="", metavar="PATTERNS", help="regular expressions")
    parser.add_argument("--threads", default=f"1,{cores}" if 1 < cores else "1")
    parser.add_argument("--peers", metavar="NAMES", help="default: all that are installed")
    parser.add_argument("--seconds", type=float, help="per workload; default 3")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, few samples")
    parser.add_argument("--no-latency", action="store_true", help="workloads only")
    parser.add_argument("--only-latency", action="store_true", help="no workloads")
    parser.add_argument("--only-calls", action="store_true", help="only calls of small arrays")
    parser.add_argument("--json", metavar="FILE", help="write all results")
    parser.add_argument("--page", metavar="FILE", help="rewrite the tables of a page")
    parser.add_argument("--from", dest="saved", metavar="FILE", help="results of an earlier run")
    parser.add_argument("--suite", choices=("anchors", *suites.SUITES, "all"), default="anchors")
    parser.add_argument("--seed", type=int, help="of drawn workloads; by default a new one")
    parser.add_argument("--count", type=int, default=44, help="of drawn workloads")
    parser.add_argument(
        "--isa", choices=("avx2",), help="instructions that everyone may use at most"
    )
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    unknown = set((options.peers or "").split(",")) - {"", *peers.PEERS}
    if unknown:
        parser.error(f"no peer is called {', '.join(sorted(unknown))}: {', '.join(peers.PEERS)}")
    return options


def _names(options: argparse.Namespace) -> list[str]:
    """The peers to time: those named, else those installed that can be held to what everyone may use at most."""
    from bench import peers

    chosen = options.peers.split(",") if options.peers else peers.installed()
    unheld = {"JAX", "torch.compile"} if options.isa else set()
    return [name for name in peers.PEERS if name in chosen and name not in unheld]


def _run(options: argparse.Namespace) -> dict[str, Any]:
    """Each number of threads in a process of its own, whose environment sets it for every system."""
    from bench import calls, latency, machine

    results: dict[str, Any] = {"machine": machine.describe(), "threads": {}}
    if options.only_calls:
        return {**results, "calls": calls.run(options.quick)}
    if not options.only_latency:
        for threads in map(int, options.threads.split(",")):
            results["threads"][str(threads)] = _in_child(options, threads)
    if not options.no_latency:
        results["latency"] = latency.run(options.quick)
        results["calls"] = calls.run(options.quick)
    return results


def _in_child(options: argparse.Namespace, threads: int, more: Sequence[str] = ()) -> Any:
    """What a process with so many threads finds, which takes ``more`` arguments."""
    from bench import machine

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "results.json")
        command = [sys.executable, "-m", "bench", "--child", str(threads), "--json", str(file)]
        command += ["--only", options.only, "--peers", ",".join(_names(options)), *more]
        command += ["--quick"] if options.quick else []
        command += ["--isa", options.isa] if options.isa else []
        command += ["--seconds", str(options.seconds)] if options.seconds is not None else []
        environment = machine.environment(threads, options.isa or "")
        subprocess.run(command, check=True, cwd=ROOT, env=environment)
        return json.loads(file.read_text("utf-8"))


def _child(options: argparse.Namespace) -> int:
    from bench import machine, measure, suites

    machine.pin(options.child)
    if options.isa:
        machine.hold_to(options.isa)
    only = [pattern for pattern in options.only.split(",") if pattern]
    found: Any
    if options.suite == "anchors":
        effort = measure.QUICK_EFFORT if options.quick else measure.Effort()
        if options.seconds is not None:
            effort = measure.Effort(seconds=options.seconds)
        found = measure.run(_names(options), options.child, only, effort, options.quick)
    else:
        effort = measure.Effort(seconds=0.5 if options.seconds is None else options.seconds)
        tasks = suites.tasks_of(options.suite, options.seed, options.count)
        chosen = (t for t in tasks if not only or any(re.search(p, t.name()) for p in only))
        without = ("JAX",) if options.isa else ()
        found = suites.run(chosen, options.child, effort, without)
    Path(options.json).write_text(json.dumps(found), "utf-8")
    return 0


def _suites(options: argparse.Namespace) -> int:
    """The tasks of suites; each suite and number of threads in a process whose environment sets the number."""
    from bench import report, suites

    seed = random.randrange(10**6) if options.seed is None else options.seed
    chosen = suites.SUITES if options.suite == "all" else (options.suite,)
    results: dict[str, Any] = {}
    for threads in options.threads.split(","):
        results[threads] = {}
        for suite in chosen:
            print(f"--suite {suite} --seed {seed} --threads {threads}", flush=True)
            arguments = ["--suite", suite, "--seed", str(seed), "--count", str(options.count)]
            results[threads][suite] = _in_child(options, int(threads), arguments)
            print(suites.summary(results[threads][suite]))
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    if options.page:
        report.rewrite(Path(options.page), report.SUITES, suites.markdown(results))
    wrong = (r["wrong"] for run in results.values() for rows in run.values() for r in rows)
    return int(any("i" in each for each in wrong))


def _status(results: dict[str, Any]) -> int:
    """1 where the times of one of our programs are missing: it failed, or its result was wrong."""
    from bench.measure import OURS

    return int(
        any(
            OURS in row["wrong"]
            for run in results["threads"].values()
            for rows in (run["workloads"], run.get("steps", {}))
            for row in rows.values()
        )
    )


if __name__ == "__main__":
    sys.exit(main())
