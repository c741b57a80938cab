"""Stories of rows of tables whose definitions change: what the recordings show of the statements."""

from pathlib import Path

import pytest

from conflict.explaining.events import EventKind, StoryEvent
from conflict.explaining.explainer import Explainer
from conflict.explaining.story import Story
from tests.conflict.explaining.test_recordings import explainer_of
from tests.corpora import RECORDINGS

EVERYDAY = RECORDINGS / "everyday"


def explainer(name: str, folder: Path) -> Explainer:
    return explainer_of(EVERYDAY / name, folder / "out")[0]


def statements(story: Story) -> list[StoryEvent]:
    return [event for event in story.events if event.kind is EventKind.DEFINED]


def test_rows_that_are_copied(tmp_path: Path) -> None:
    """Before the copy A judged by epoch, and says so; after it by nothing, and the dropped column is not shown."""
    told = explainer("epoch2/ddl_drop_column_type8", tmp_path)
    story = told.row("day.t1", "k=1")
    assert story.functions["A", story.table] == "NDB$EPOCH2(6), later by none"
    (rejected,) = [event for event in story.events if event.verdict == "REJECTED"]
    assert "and only epochs up to" in rejected.sentence
    first, second = statements(story)
    assert (first.cluster, second.cluster, second.cause_number) == ("A", "B", first.number)
    # The statement of the recording.
    assert first.sentence.startswith("ALTER TABLE t1 DROP COLUMN s, ALGORITHM=COPY: the rows are copied")
    assert first.row is not None
    assert "s" not in first.row
    assert first.place is not None
    assert rejected.number < first.number


def test_rows_that_are_gone(tmp_path: Path) -> None:
    """TRUNCATE leaves no row; the one that is inserted again ends the same on both."""
    story = explainer("max/ddl_truncate_type7", tmp_path).row("day.t1", "k=1")
    assert [event.row for event in statements(story)] == [None, None]
    after = [event for event in story.events if event.number > statements(story)[0].number and event.cluster == "A"]
    assert after[0].kind is EventKind.COMMITTED
    assert after[0].operation == "WRITE_ROW"


def test_a_table_that_is_dropped_and_made_anew(tmp_path: Path) -> None:
    """Both statements are told; its function is that of the name, before and after."""
    story = explainer("max/ddl_drop_and_create_type7", tmp_path).row("day.t1", "k=1")
    words = [event.sentence.split()[0] for event in statements(story) if event.cluster == "A"]
    assert words == ["DROP", "CREATE"]
    assert story.functions["A", story.table] == "NDB$MAX(x)"


def test_a_name_without_a_function(tmp_path: Path) -> None:
    """Between the two renamings no row of mysql.ndb_replication matches."""
    story = explainer("epoch/ddl_rename_and_back_type8", tmp_path).row("day.t1", "k=1")
    assert story.functions["A", story.table] == "NDB$EPOCH(6), later by none, later by NDB$EPOCH(6)"
    assert len(statements(story)) == 4


def test_a_row_that_there_never_was(tmp_path: Path) -> None:
    """Statements alone are no story."""
    with pytest.raises(Exception, match="nothing happened to the row k=99"):
        explainer("max/ddl_truncate_type7", tmp_path).row("day.t1", "k=99")
