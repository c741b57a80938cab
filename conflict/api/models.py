"""
What Python users and commands call about models: simulate one or a grid of them, or learn one from binlogs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from conflict.api.runs import additions_of, run_of
from conflict.config.arguments import (
    CLUSTER,
    CONFLICT_FN,
    SOURCES,
    ConflictFns,
    StageProgress,
    Typed,
    WhatIfEngine,
    no_progress,
    typed,
)
from conflict.config.option_values import path_of
from conflict.errors import ConfigurationError
from conflict.telling.shown_text import listed

if TYPE_CHECKING:
    from conflict.api.runs import Source
    from conflict.history.grid.folder import Folder
    from conflict.history.tasks import Runner
    from conflict.resolvers.user_policies import Given
    from conflict.rules.functions import FunctionSpec
    from conflict.whatif.simulating.run import Simulated
    from conflict.whatif.simulating.simulation import Simulation
    from conflict.whatif.sweeping.sweep_file import Design
    from conflict.whatif.sweeping.swept import Sweep
    from conflict.whatif.workers import ParallelWorkers


_SEEDS = 2**31 - 1
_MODEL = Typed("model_file", "What to simulate (TOML).", is_file=True)


@typed(model=_MODEL, seeds=Typed(at_least=1), seed=Typed(at_least=0, at_most=_SEEDS))
def simulate(
    model: Path | str | Mapping[str, Any],
    *,
    function: Given | str | None = None,
    seeds: int = 1,
    seed: int | None = None,
    out: Path | str | None = None,
    write_binlogs: Path | str | None = None,
    force: bool = False,
    progress: StageProgress = no_progress,
) -> Simulation:
    """
    Simulate a workload on clusters that replicate to each other; as the command ``simulate``.

    Args:
        model: The file of the model, or its entries (docs/model.md).
        function: A conflict_fn, or a resolver (docs/resolvers.md), for the tables that have a function, or for all if
            none has.
        seeds: How many runs, each with a seed of its own; intervals take 6 or more.
        seed: The first seed, in place of the model's.
        out: Folder for the result of the first run, as of resolve; its binlogs go to OUT-binlogs, unless
            `write_binlogs` says where.
        write_binlogs: Folder for the binlogs of all clusters in the first run, with a run file and the schedule.
        force: Replace what is there already.
        progress: As for `resolve`.

    Returns:
        A `Simulation`: figures over all runs, and those of each.

    Raises:
        ConfigurationError: The model is wrong, or a folder cannot be written.
    """
    from conflict.config.text_file import located
    from conflict.decoding.staging import refuse_same_output
    from conflict.whatif.simulating.model_file import model_document, parse_model
    from conflict.whatif.simulating.report import run_seeds
    from conflict.whatif.simulating.simulation import simulation_of

    file = Path("model.toml") if isinstance(model, Mapping) else Path(model)
    entries = dict(model) if isinstance(model, Mapping) else model_document(file)
    target, logs = path_of(out), binlogs_of(path_of(out), path_of(write_binlogs))
    refuse_same_output(target, logs)
    _check_folders(target, logs, file, force=force)
    with nullcontext() if isinstance(model, Mapping) else located(file):
        entries, functions = _with_function(entries, function)
        made = parse_model(entries, functions)
    made = made if seed is None else attrs.evolve(made, seed=seed)
    if logs is not None and made.own_rules:
        name = made.own_rules[0].name
        message = f"no server runs {name}, so there are no binlogs of it; leave out --out and --write-binlogs"
        raise ConfigurationError(message)
    contradicted = False

    def keep(run: Simulated) -> None:
        nonlocal contradicted
        contradicted = _keep_run(run, target, logs, progress, force=force)

    figures = run_seeds(made, seeds, progress, keep)
    return simulation_of(made, entries, figures, contradicted=contradicted)


def _with_function(
    entries: dict[str, Any], function: Given | str | None
) -> tuple[dict[str, Any], Sequence[FunctionSpec]]:
    """Return the entries of a model with another function, and the functions that are known with it."""
    from conflict.rules.functions import FUNCTIONS
    from conflict.whatif.simulating.model_file import function_of_model, with_preset
    from conflict.whatif.sweeping.sweep_file import document_at

    if function is None:
        return entries, FUNCTIONS
    text, functions = function_of_model(function)
    return document_at(with_preset(entries), {"function": text}), functions


def binlogs_of(out: Path | None, write_binlogs: Path | None) -> Path | None:
    """Return the folder for the binlogs of the first run: by default, beside that of its result."""
    return write_binlogs or (None if out is None else Path(f"{out}-binlogs"))


def _check_folders(out: Path | None, binlogs: Path | None, model_file: Path, *, force: bool) -> None:
    """Make sure, before the work, that both folders can be written."""
    from conflict.history.grid.folder import Folder
    from conflict.results.files import check_target
    from conflict.whatif.simulating.run_folder import check_run_folder

    if binlogs is not None:
        check_run_folder(binlogs, replace=force)
    if out is not None and binlogs is not None:
        check_target(Folder(str(out.absolute())), [model_file, binlogs], replace=force)


def _keep_run(run: Simulated, out: Path | None, binlogs: Path | None, progress: StageProgress, *, force: bool) -> bool:
    """Write the binlogs of a run, and their result; return whether the one contradicts the other."""
    import conflict.runs.pipeline
    from conflict.config.arguments import DeploymentPolicy
    from conflict.config.run_file import load_run_file
    from conflict.runs.pipeline import ResolveOptions
    from conflict.whatif.simulating.run_folder import RUN_FILE, run_folder, write_run

    if binlogs is None:
        return False
    with run_folder(binlogs, replace=force) as folder:
        write_run(run, folder, lambda done, total: progress("writing binlogs", done, total))
    if out is None:
        return False
    made = load_run_file(binlogs / RUN_FILE)
    # A simulation is of what the servers do, whatever the manual advises.
    options = ResolveOptions(replace=force)
    done = conflict.runs.pipeline.resolve(
        made, str(out), engine="local", policy=DeploymentPolicy.NEEDS, options=options, progress=progress
    )
    return done.contradicted


@typed(sources=SOURCES, scale=Typed(at_least=0, at_most=1e6), conflict_fn=CONFLICT_FN, primary=CLUSTER)
def workload(
    *sources: Source,
    out: Path | str | None = None,
    scale: float = 1.0,
    inexact_keys: bool = False,
    schema: Path | str | None = None,
    ndb_replication: Path | str | None = None,
    conflict_fn: ConflictFns | None = None,
    primary: str | None = None,
    force: bool = False,
    progress: StageProgress = no_progress,
) -> dict[str, Any]:
    """
    Learn a workload from the binlogs of two clusters, as a model for `simulate`; as the command ``workload``.

    Args:
        sources: As for `resolve`.
        out: File for the learnt model (TOML), for `simulate`; None for none.
        scale: Factor for the rates of transactions.
        inexact_keys: As for `resolve`.
        schema: As for `resolve`.
        ndb_replication: As for `resolve`.
        conflict_fn: As for `resolve`.
        primary: As for `resolve`.
        force: As for `resolve`.
        progress: As for `resolve`.

    Returns:
        The entries of the model.

    Raises:
        ConfigurationError: It is not about two clusters, or the file cannot be written.
        HistoryError: There is nothing to learn.
    """
    from conflict.decoding.staging import check_output, staged_file
    from conflict.whatif.simulating.learning import learnt_model
    from conflict.whatif.simulating.model_file import model_text

    run = run_of(sources, additions_of(schema, ndb_replication, conflict_fn, primary))
    target = path_of(out)
    check_output(target, run.inputs, force=force)
    configuration = run.configuration.with_inexact_keys() if inexact_keys else run.configuration
    document = learnt_model(configuration, scale, partial(progress, "simulating"))
    if target is not None:
        with staged_file(target) as file:
            file.write(model_text(document).encode())
    return document


@typed(sources=SOURCES, conflict_fn=CONFLICT_FN, primary=CLUSTER)
def workers(
    *sources: Source,
    inexact_keys: bool = False,
    schema: Path | str | None = None,
    ndb_replication: Path | str | None = None,
    conflict_fn: ConflictFns | None = None,
    primary: str | None = None,
    progress: StageProgress = no_progress,
) -> ParallelWorkers:
    """
    Return how many times faster 2 to 16 parallel workers would apply the epochs in binlogs; as the command ``workers``.

    Args:
        sources: As for `resolve`.
        inexact_keys: As for `resolve`.
        schema: As for `resolve`.
        ndb_replication: As for `resolve`.
        conflict_fn: As for `resolve`.
        primary: As for `resolve`.
        progress: As for `resolve`.

    Raises:
        ConfigurationError: Something that is needed is missing, or a file is wrong.
        HistoryError: The binlogs contradict each other.
    """
    from conflict.whatif.workers import workers_of

    configuration = run_of(sources, additions_of(schema, ndb_replication, conflict_fn, primary)).configuration
    return workers_of(configuration.with_inexact_keys() if inexact_keys else configuration, progress)


@typed(
    seeds=Typed(at_least=1),
    find=Typed("CONDITION"),
    over=Typed("AXIS"),
    within=Typed(at_least=0),
    workers=Typed(at_least=1),
)
def sweep(
    model: Path | str | Mapping[str, Any] | None,
    grid: Mapping[str, Iterable[Any]] | Path | str | None = None,
    *,
    seeds: int | None = None,
    out: Path | str | None = None,
    find: str | None = None,
    over: str | None = None,
    within: float | None = None,
    engine: WhatIfEngine | str = "auto",
    workers: int | None = None,
    progress: StageProgress = no_progress,
) -> Sweep:
    """
    Simulate a grid of models; as the command ``sweep``.

    Args:
        model: The model: its entries, or a file. Without `grid`, a sweep file, which has both (docs/sweep.md).
        grid: By axis, the values to try: ``{"function": ["NDB$EPOCH()", "NDB$MAX(x)"], "latency_ms": [10, 100]}``; or a
            sweep file, of whose model `model` takes the place.
        seeds: Runs at each point; by default those of the file, or 10.
        out: Folder of the sweep; its finished runs are not simulated again. None is kept without it.
        find: Find the border of this condition: 'lost_updates == 0'.
        over: Axis of the search, such as latency_ms.
        within: Distance to the border that is near enough.
        engine: The engine: ``auto``, ``local`` or ``spark``; auto is spark if the environment asks for it.
        workers: Processes of engine local; one per core by default.
        progress: As for `resolve`.

    Returns:
        A `Sweep`: the runs, what is lost at each point, differences paired by seed, borders.

    Raises:
        ConfigurationError: The grid, the model, the condition or the folder cannot be used.
    """
    from conflict.history.grid.folder import Folder
    from conflict.history.grid.whole_files import only_writer
    from conflict.whatif.sweeping.border import check_axis, parse_condition
    from conflict.whatif.sweeping.sweep import Search, check_folder, run_sweep

    if engine not in tuple(WhatIfEngine):
        message = f"engine {engine} does not sweep; use {listed([*WhatIfEngine], 'or')}"
        raise ConfigurationError(message)
    if (find is None) != (over is None) or (within is not None and find is None):
        message = (
            "find and over go together, and within needs both: a condition, and the axis to look for its border on"
        )
        raise ConfigurationError(message)
    design, search = _design(model, grid, seeds), None
    if find is not None and over is not None:
        check_axis(design, over, within)
        search = Search(parse_condition(find), over, within)
    with tempfile.TemporaryDirectory(prefix="ndb-conflict-") as work:
        # Its lock is beside the folder itself, not beside a link to it.
        folder = Folder(str((Path(work) / "sweep" if out is None else Path(out)).resolve()))
        check_folder(folder)
        with only_writer(folder):
            return run_sweep(design, folder, _runner(engine, workers, folder, progress), search, progress)


def _design(
    model: Path | str | Mapping[str, Any] | None,
    grid: Mapping[str, Iterable[Any]] | Path | str | None,
    seeds: int | None,
) -> Design:
    """Return what is swept; see `sweep`."""
    from conflict.whatif.sweeping.sweep_file import design_of, load_sweep

    given = Path(model) if isinstance(model, Path | str) else model
    if isinstance(grid, Mapping):
        if given is None:
            message = "there is no model; give its entries or its file, before the grid"
            raise ConfigurationError(message)
        found = design_of(given, grid)
    elif grid is not None:
        found = load_sweep(Path(grid), given)
    elif isinstance(given, Path):
        found = load_sweep(given)
    else:
        message = "there is no grid; give the values to try by axis: {'latency_ms': [10, 100]}"
        raise ConfigurationError(message)
    return found if seeds is None else attrs.evolve(found, seeds=seeds)


def _runner(engine: str, workers: int | None, folder: Folder, progress: StageProgress) -> Runner:
    from conflict.history.tasks import process_runner
    from conflict.runs.engine_choice import spark_asked_for
    from conflict.runs.spark_workers import spark_workers

    if engine == "spark" or (engine == "auto" and spark_asked_for()):
        return spark_workers(folder, progress)
    return process_runner(workers)
