"""
What in the settings of a model changes its figures, as it would on servers.
"""

from __future__ import annotations

from collections.abc import Iterator

from conflict.rules.gci_bits import cost_of_few_gci_bits
from conflict.whatif.simulating.configuration import Model, Site, source_of
from conflict.whatif.simulating.toml_entries import MILLISECOND


def remarks_of(model: Model) -> list[str]:
    """Return sentences on extra GCI bits that do not tell epochs apart, and on workers that bring nothing."""
    return [*_few_gci_bits(model), *_idle_workers(model)]


def _few_gci_bits(model: Model) -> Iterator[str]:
    for site in model.sites:
        epochs = -(-site.checkpoint // site.epoch)
        times = f"{_ms(site.checkpoint)} ms between global checkpoints, {_ms(site.epoch)} ms between epochs"
        for name, setup in model.setups[site.name].items():
            judge = setup.deployed(site.role).judge
            cost = None if judge is None else cost_of_few_gci_bits(judge, epochs, times)
            if cost is not None:
                yield f"{name} on {site.name}: {cost}"


def _ms(time: int) -> str:
    return f"{time / MILLISECOND:,.10g}"


def _idle_workers(model: Model) -> Iterator[str]:
    for side, site in enumerate(model.sites):
        source = _source(model, side)
        if source is not None and site.applier.workers > 1 and not source.logs_dependencies:
            yield (
                f"The {site.applier.workers} workers of {site.name} bring nothing: {source.name} has "
                "ndb_log_transaction_dependency = OFF, so by its log each epoch waits for the one before."
            )


def _source(model: Model, side: int) -> Site | None:
    number = source_of(model, side)
    return None if number is None else model.sites[number]
