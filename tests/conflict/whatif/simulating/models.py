"""Small models, drawn at random, that meet everything: hot rows, all operations, outages, stops, retries."""

from __future__ import annotations

from random import Random

import attrs

from conflict.rules.functions import FUNCTIONS, Argument
from conflict.rules.replication_table import Role
from conflict.whatif.simulating.configuration import ApplierSettings, Latency, Link, Model, ModelTable, Site, Span
from conflict.whatif.simulating.kernels.world import Stamp, Wish
from conflict.whatif.simulating.key_choice import Hotspot, KeyChoice, Latest, Uniform, Zipfian
from conflict.whatif.simulating.workload import InsertKeys, Mix, Workload

BY_COLUMN = [f"{spec.name}(x)" for spec in FUNCTIONS if spec.argument is Argument.COLUMN]
BY_EPOCH = [f"{spec.name}()" for spec in FUNCTIONS if spec.argument is Argument.GCI_BITS]
MILLISECOND = 1000
SHAPES = (
    {"A": "C", "B": "A", "C": "B"},  # source of each cluster: a ring
    {"A": "", "B": "A", "C": "B"},  # a chain
    {"A": "B", "B": "A", "C": "B"},  # a ring of two, and one behind
    {"A": "B", "B": "", "C": "B"},  # a tree
    {"A": "D", "B": "A", "C": "B", "D": "C"},  # a ring of four
    {"A": "", "B": "A", "C": "B", "D": "C"},  # a chain of four
    {"A": "", "B": "A", "C": "A", "D": "A"},  # one that all others follow
    {"A": "C", "B": "A", "C": "B", "D": "B"},  # a ring, and one behind
    {"A": "B", "B": "A", "C": "B", "D": "C"},  # a ring of two, and two behind, one after the other
)


def random_model(seed: int, duration: int = 3_000_000) -> Model:
    """Return a model; the same for the same seed."""
    chance = Random(seed)
    tables = tuple(_table(chance, f"t{number}") for number in range(chance.randint(1, 3)))
    roles = (Role.PRIMARY, Role.SECONDARY)
    if chance.random() < 0.3:
        roles = chance.choice([(Role.SECONDARY, Role.PRIMARY), (Role.PRIMARY, Role.PRIMARY), (Role.PASS, Role.PASS)])
    first, second = (
        Site(
            name,
            number,
            _workload(chance, len(tables)),
            role,
            _link(chance, duration),
            ApplierSettings(chance.choice([0, 2000, 50_000]), chance.choice([0, 500]), _spans(chance, duration)),
            chance.choice([50, 100, 100, 330]) * MILLISECOND,
            skew=chance.choice([0, 0, -400, 250]) * MILLISECOND,
        )
        for number, (name, role) in enumerate(zip("AB", roles, strict=True), start=1)
    )
    return Model((first, second), tables, duration)


def random_network(seed: int, duration: int = 1_500_000) -> Model:
    """Return a model of three or four clusters; the same for the same seed."""
    chance = Random(seed)
    model, other = (random_model(chance.randrange(2**32), duration) for _ in range(2))
    shape = chance.choice(SHAPES)
    more = [
        attrs.evolve(mine, link=each.link, applier=each.applier)
        for mine, each in zip(model.sites, other.sites, strict=True)
    ]
    sites = tuple(
        attrs.evolve(
            site, name=name, server_id=number, role=Role.NONE, replicates_from=(shape[name],) if shape[name] else ()
        )
        for number, (name, site) in enumerate(zip(shape, (*model.sites, *more), strict=False), start=1)
    )
    tables = tuple(_network_table(chance, table) for table in model.tables)
    return attrs.evolve(model, sites=sites, tables=tables, drain=chance.choice([0, 60_000_000]))


def _network_table(chance: Random, table: ModelTable) -> ModelTable:
    if chance.random() < 0.2:
        return attrs.evolve(table, functions={})
    functions = dict.fromkeys("ABCD", chance.choice(BY_COLUMN))
    stamp = chance.choice([Stamp.CLOCK, Stamp.VERSION])
    return attrs.evolve(table, functions=functions, stamp=stamp, binlog_type=chance.choice([7, 7, 7, 6, 8, 9]))


def _table(chance: Random, name: str) -> ModelTable:
    kind = chance.random()
    if kind < 0.15:
        functions: dict[str, str] = {}
    elif kind < 0.5:
        functions = dict.fromkeys("AB", chance.choice(BY_COLUMN))
    elif kind < 0.6:
        functions = {name: chance.choice(BY_COLUMN) for name in "AB"}
    else:
        function = chance.choice(BY_EPOCH)
        functions = dict.fromkeys("A" if "EPOCH2" not in function else "AB", function)
    by_column = any(text in BY_COLUMN for text in functions.values())
    types = [7] if by_column else [6, 7, 8, 9]
    if not any("EPOCH2" in text for text in functions.values()) and chance.random() < 0.2:
        types = [2, 3]
    if by_column and chance.random() < 0.3 and all("MAX_DEL" in text for text in functions.values()):
        types = [9]
    if types == [2, 3] and by_column:
        types = [3]
    stamp = chance.choice([Stamp.CLOCK, Stamp.VERSION] if by_column else [*Stamp])
    return ModelTable(name, chance.choice([0, 3, 20]), chance.randint(1, 4), functions, chance.choice(types), stamp)


def _workload(chance: Random, tables: int) -> Workload:
    wishes = {wish: chance.choice([0, 1, 3]) + 0.01 for wish in Wish}
    mix = Mix(
        wishes,
        {size: chance.random() for size in (1, 2, 5)},
        {number: chance.random() for number in range(tables)},
        chance.randint(1, tables),
    )
    return Workload(
        tuple(chance.choice([5.0, 40.0, 100.0]) for _ in range(3)),
        mix,
        keys={number: _keys(chance) for number in range(tables)},
        columns=chance.randint(0, 3),
        affinity=chance.choice([0, 0, 0.7]),
        inserts={number: chance.choice(list(InsertKeys)) for number in range(tables)},
        think=chance.choice([0, 0, 5000, 80_000]),
        checks=chance.random() < 0.5,
        retries=chance.choice([0, 2]),
        retry_delay=chance.choice([0, 10_000]),
    )


def _keys(chance: Random) -> KeyChoice:
    return chance.choice([Uniform(), Zipfian(), Latest(), Hotspot()])


def _link(chance: Random, duration: int) -> Link:
    latency = chance.choice(
        [
            Latency(),
            Latency("constant", 20_000),
            Latency("normal", 90_000, 60_000),
            Latency("lognormal", 40_000, 1.0),
            Latency("trace", trace=((0, 10_000), (1_000_000, 400_000), (2_000_000, 5000))),
        ]
    )
    return Link(latency, chance.choice([0, 20_000]), _spans(chance, duration))


def _spans(chance: Random, duration: int) -> tuple[Span, ...]:
    if chance.random() < 0.6:
        return ()
    start = chance.randrange(duration)
    return ((start, start + chance.randrange(duration // 2)),)


def in_parallel(model: Model, workers: int, *, logged: bool = True) -> Model:
    """Return a model whose appliers have several workers; `logged` if epochs without a row in common are logged so."""
    return attrs.evolve(
        model,
        sites=tuple(
            attrs.evolve(each, applier=attrs.evolve(each.applier, workers=workers), logs_dependencies=logged)
            for each in model.sites
        ),
    )


def parallel_network(seed: int, duration: int = 1_500_000) -> Model:
    """Return a model of three or four clusters whose appliers have three workers; the same for the same seed."""
    return in_parallel(random_network(seed, duration), 3)
