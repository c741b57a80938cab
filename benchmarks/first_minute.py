"""
What a command costs the first time: each with an empty cache of kernels, and again with all of them compiled.

    python -m benchmarks.first_minute --out build/bench/first_minute.json

Processor seconds of whole processes, less those of ``ndb-conflict --version``. Cold, small work runs its kernels
interpreted (see `ndb_formats.columnar.kernel`); warm, they are compiled. Goals are for two cores at rest.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs

from benchmarks.machine import environment, start
from benchmarks.makers.pair_maker import make_pair
from benchmarks.timing import markdown_table, write_results

ROOT = Path(__file__).parents[1]
CHANGES = 10_000
MEBIBYTE = 1 << 20
# The command as it is, and with all kernels compiled, however small the work.
_COMMAND = "from conflict.cli.app import main; main()"
_COMPILED = f"from ndb_formats.columnar.kernel_mode import Mode, set_mode; set_mode(Mode.COMPILED); {_COMMAND}"


@attrs.frozen
class Case:
    """
    A command, and the most that it should cost cold, in processor seconds beyond the start; None for no goal.
    """

    name: str
    arguments: tuple[str, ...]
    goal: float | None = None


def cases(folder: Path) -> list[Case]:
    """Return the commands, in an order in which each finds what it reads; `folder` holds a pair of clusters."""
    demo, functions = "conflict/demo/run.toml", "NDB$EPOCH(),NDB$MAX(x),OVERWRITE"
    run, result, one = str(folder / "run.toml"), str(folder / "result"), str(folder / "one.000001")
    return [
        Case("decode -vv, 1 MiB", ("decode", "-vv", one, "-r", str(folder / "text"), "--force"), 1.5),
        Case("decode --format json, 1 MiB", ("decode", one, "--format", "json", "-r", str(folder / "j"), "--force")),
        Case("sizes, 1 MiB", ("sizes", one, "--schema", str(folder / "schema.sql"))),
        Case("check, demo", ("check", demo)),
        Case(f"resolve, {CHANGES:,} changes", ("resolve", run, "--out", result, "--force"), 4),
        Case("conflicts", ("conflicts", result)),
        Case("report", ("report", result, "--out", str(folder / "report.html"), "--force")),
        Case(
            "compare, demo",
            ("compare", demo, "--functions", functions, "--out", str(folder / "compared"), "--force"),
            6,
        ),
        Case("simulate, example", ("simulate", "docs/examples/model.toml"), 15),
        Case(
            "workload, case study",
            ("workload", "docs/examples/case_study/run.toml", "--out", str(folder / "learnt.toml"), "--force"),
            6,
        ),
    ]


def processor_seconds(code: str, arguments: Sequence[str], cache: Path) -> float:
    """Run the command in a process of its own, with this cache of kernels."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(  # noqa: S603  # our own command
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1, 4):  # 1: a check found something; 4: with warnings
        raise RuntimeError(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def make_inputs(folder: Path) -> None:
    """Write a pair of clusters, and the first MiB of a log."""
    make_pair(folder, CHANGES, rows=CHANGES // 400)
    with (folder / "A.000001").open("rb") as log:
        (folder / "one.000001").write_bytes(log.read(MEBIBYTE))


def main() -> None:
    """Measure, and print how far each command is from its goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "first_minute.json")
    arguments = parser.parse_args()
    began = start()
    with tempfile.TemporaryDirectory() as made:
        folder, warm_cache = Path(made), Path(made) / "warm"
        make_inputs(folder)
        results, rows = {}, []
        empty = min(processor_seconds(_COMMAND, ["--version"], warm_cache) for _ in range(arguments.repeat))
        for case in cases(folder):
            cold = []
            for number in range(arguments.repeat):
                cache = folder / f"cold{number}"
                cold.append(processor_seconds(_COMMAND, case.arguments, cache) - empty)
                shutil.rmtree(cache, ignore_errors=True)
            compiling = processor_seconds(_COMPILED, case.arguments, warm_cache) - empty
            warm = [processor_seconds(_COMPILED, case.arguments, warm_cache) - empty for _ in range(arguments.repeat)]
            figures = statistics.median(cold), statistics.median(warm)
            goal = "" if case.goal is None else f"{case.goal:g}"
            off = "" if case.goal is None else f"{figures[0] / case.goal:.2f}"
            rows.append([case.name, f"{figures[0]:.1f}", goal, off, f"{figures[1]:.1f}", f"{compiling:.1f}"])
            results[case.name] = {
                "cold": {"processor_seconds": cold},
                "warm": {"processor_seconds": warm},
                "compiling": compiling,
                "goal": case.goal,
            }
            print(rows[-1], flush=True)
    titles = ["command", "cold", "goal", "cold / goal", "warm", "first compiled"]
    table = markdown_table(titles, rows)
    document = {"environment": environment(began, "numba", "numpy", "pyarrow"), "start": empty, "results": results}
    write_results(arguments.out, document, [table])


if __name__ == "__main__":
    main()
