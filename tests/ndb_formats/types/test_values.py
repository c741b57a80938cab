"""ABSENT: the value of a column that an image does not carry."""

import copy
import pickle

from ndb_formats.types.values import ABSENT, Absent


def test_absent_is_neither_null_nor_empty():
    """ABSENT equals no value that a column can hold."""
    assert [value == ABSENT for value in (None, "", b"", 0, False)] == [False] * 5


def test_absent_is_false_and_prints_as_itself():
    """ABSENT is false in a condition and clean in a message."""
    assert (bool(ABSENT), repr(ABSENT)) == (False, "ABSENT")


def test_absent_keeps_its_identity():
    """Pickling and copying give the one ABSENT."""
    assert pickle.loads(pickle.dumps(ABSENT)) is ABSENT
    assert copy.deepcopy(ABSENT) is ABSENT
    assert list(Absent) == [ABSENT]
