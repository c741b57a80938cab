"""Notes on definitions: each sentence once."""

from conflict.history.preparing.definitions_in_log import DefinitionNote, NoteKind, sentences_of


def test_one_sentence_for_all_tables():
    """Tables are named once, in order, with the place that shows the first of them."""
    notes = [
        DefinitionNote(f"shop.{name}", f"binlog.000001, position {at}", NoteKind.TAKEN)
        for name, at in (("orders", 300), ("items", 400), ("orders", 500))
    ]
    taken = "are not in the schema; their definitions are taken from the binlogs"
    assert sentences_of(notes) == (
        f"tables shop.items, shop.orders {taken}; the first is at binlog.000001, position 300",
    )
    assert sentences_of(notes[1:2]) == (
        "binlog.000001, position 400: table shop.items is not in the schema; its definition is taken from the binlogs",
    )


def test_many_tables_are_counted():
    """Ten names are enough to see which ones are meant."""
    notes = [DefinitionNote(f"d.t{number:02d}", "binlog.000001, position 4", NoteKind.NOT_READ) for number in range(13)]
    (sentence,) = sentences_of(notes)
    assert "d.t09 and 3 more are not in the schema" in sentence
    assert "d.t10" not in sentence
