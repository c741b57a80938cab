"""Which tables' changes an applier drops, by the rules of the manual."""

import pytest

from conflict.rules.replication_filter import ReplicationFilter


@pytest.mark.parametrize(
    ("given", "kept", "dropped"),
    [
        ({}, ["a.t", "b.t"], []),
        ({"do_db": ("a",)}, ["a.t"], ["b.t", "A.t"]),
        ({"ignore_db": ("a",)}, ["b.t"], ["a.t"]),
        ({"do_db": ("a",), "ignore_db": ("a",)}, ["a.t"], ["b.t"]),
        ({"do_table": ("a.t",)}, ["a.t"], ["a.u", "b.t"]),
        ({"ignore_table": ("a.t",)}, ["a.u", "b.t"], ["a.t"]),
        ({"wild_do_table": ("a.t%",)}, ["a.t", "a.t1"], ["a.u", "b.t"]),
        ({"wild_ignore_table": ("a.t_",)}, ["a.t", "a.t12", "b.t1"], ["a.t1"]),
        ({"wild_ignore_table": (r"a.t\_1",)}, ["a.tx1"], ["a.t_1"]),
        ({"wild_ignore_table": ("a%.%",)}, ["b.t"], ["a.t", "abc.t"]),
        ({"do_table": ("a.t",), "ignore_table": ("a.t", "a.u")}, ["a.t"], ["a.u", "a.v"]),
        ({"ignore_table": ("a.t",), "wild_do_table": ("a.%",)}, ["a.u"], ["a.t", "b.t"]),
        ({"wild_do_table": ("a.t%",), "wild_ignore_table": ("a.%",)}, ["a.t1"], ["a.u", "b.t"]),
        ({"do_db": ("a",), "ignore_table": ("a.t",)}, ["a.u"], ["a.t", "b.u"]),
        ({"ignore_db": ("a",), "do_table": ("a.t",)}, [], ["a.t", "b.t"]),
    ],
)
def test_what_is_dropped(given: dict[str, tuple[str, ...]], kept: list[str], dropped: list[str]) -> None:
    """Databases first, then tables without patterns, then patterns; an option that names what to do drops the rest."""
    rules = ReplicationFilter(**given)
    found = {name: rules.drops(*name.split(".")) for name in [*kept, *dropped]}
    assert found == {**dict.fromkeys(kept, False), **dict.fromkeys(dropped, True)}
