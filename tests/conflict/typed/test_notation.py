"""Steps as texts, and what is wrong with texts that are none."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.errors import ConfigurationError
from conflict.typed.notation import read_step, step_text
from conflict.typed.steps import (
    Apply,
    Change,
    Restart,
    Step,
    Transaction,
    apply,
    delete,
    epoch_of,
    epoch_text,
    insert,
    read,
    transaction,
    update,
)
from ndb_formats.events.rows_event import Operation


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("insert 1 v=0 x=1", Transaction((insert(1, v=0, x=1),))),
        ("INSERT 1 v=0, x=NULL", Transaction((insert(1, v=0, x=None),))),
        ("update orders 'it''s' v=-1.50", Transaction((update("it's", v=Decimal("-1.50"), table="orders"),))),
        ("update 1 `a b`=x'00fF'", Transaction((update(1, {"a b": b"\x00\xff"}),))),
        ("delete shop.orders (1, 'w3')", Transaction((delete((1, "w3"), table="shop.orders"),))),
        ("update 1 v=5; delete 2", Transaction((update(1, v=5), delete(2)))),
        ("read 1", Transaction((read(1),))),
        ("3: insert 1", transaction(insert(1), epoch=3)),
        ("3/7#99: insert 1", Transaction((insert(1),), epoch_of("3/7"), 99)),
        ("apply", apply()),
        ("apply 2", apply(2)),
        ("4/1: apply 2/3", apply("2/3", epoch="4/1")),
        ("apply 2 logged", Apply(2 << 32, None, logged=True)),
        ("apply 2 unlogged", Apply(2 << 32, None, logged=False)),
        ("restart", Restart()),
        ("rewind", Restart(rewound=True)),
    ],
)
def test_texts(text: str, step: Step) -> None:
    """A text is the step that its functions make; written again, it is that step."""
    assert read_step(text) == step
    assert read_step(step_text(step)) == step


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("updaet 1 v=5", "a step is insert, update, delete or read, apply, restart or rewind (did you mean update?)"),
        ("", "a step is insert"),
        ("update v=5", "the key of the row comes after update, as in update 1"),
        ("update 1", "update sets no column; write update 1 v=5, or read 1"),
        ("read 1 v=5", "a read sets no column; write update 1 v=5, or read 1"),
        ("update 1 v", "column v needs a ="),
        ("update 1 v=five", "here comes a value: a number, NULL, or a text in single quotes"),
        ("update 1 v='five", "texts stand in single quotes"),
        ("insert (1, 2 v=1", "a key of several columns needs a )"),
        ("0: insert 1", "here comes the number of an epoch, such as 3 or 3/1"),
        ("3 insert 1", "the epoch of a step needs a :"),
        ("3: rewind", "rewind belongs to no epoch"),
        ("apply 2 twice", "nothing more was expected"),
        ("insert 1 5=1", "here comes a column, as in v=5"),
    ],
)
def test_texts_that_are_no_steps(text: str, message: str) -> None:
    """The message says from where on a text cannot be read, and what to write."""
    with pytest.raises(ConfigurationError) as error:
        read_step(text)
    assert message in str(error.value)
    assert repr(text) in str(error.value)


NAMES = st.text(st.characters(categories=("L", "N", "P", "Z")), min_size=1)
VALUES = st.one_of(
    st.none(),
    st.integers(-(2**70), 2**70),
    st.decimals(allow_nan=False, allow_infinity=False, places=3),
    st.text(st.characters(exclude_categories=("C",))),
    st.binary(),
)
KEYS = st.lists(VALUES.filter(lambda value: value is not None), min_size=1, max_size=3).map(tuple)
CHANGES = st.builds(
    Change,
    st.sampled_from([Operation.WRITE_ROW, Operation.UPDATE_ROW]),
    KEYS,
    st.dictionaries(NAMES, VALUES, min_size=1).map(lambda values: tuple(values.items())),
)
EPOCHS = st.one_of(st.none(), st.integers(1, 2**64 - 1))


@given(st.lists(CHANGES, min_size=1, max_size=3), EPOCHS)
def test_any_transaction_is_the_one_of_its_text(changes: list[Change], epoch: int | None) -> None:
    """What is written is read again, whatever names and values are."""
    step = Transaction(tuple(changes), epoch)
    assert read_step(step_text(step)) == step


@given(st.integers(1, 2**64 - 1))
def test_any_epoch_is_the_one_of_its_text(epoch: int) -> None:
    """An epoch as text is the same number again."""
    assert epoch_of(epoch_text(epoch)) == epoch


@pytest.mark.parametrize("text", ["0", "-1", "1/-1", "x", "4294967296", "1/4294967296", ""])
def test_epochs_that_are_none(text: str) -> None:
    """An epoch has 64 bits, and is not 0."""
    with pytest.raises(ValueError, match=r"is no epoch|invalid literal"):
        epoch_of(text)
