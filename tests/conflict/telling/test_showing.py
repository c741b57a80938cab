"""What is told, on a terminal and as HTML: the same texts and figures, with their tones."""

import io
import re

from rich.console import Console

from conflict.telling.html import telling_html
from conflict.telling.terminal import print_telling, telling_text
from conflict.telling.value import Entry, Listing, Table, Telling, Tone, Toned

STATEMENT = "ALTER TABLE d.t ADD COLUMN " + ", ".join(f"column_{number} INT" for number in range(9))
TELLING = Telling(
    "A result",
    "2 rows.",
    ("One more thing.",),
    (Table("Figures", ("name", "number"), [("<b>\x1b", Toned(1234, Tone.BAD))]),),
    alarms=("Contradicted: nothing holds.",),
    warnings=("Not checked: all of it.",),
    listings=(
        Listing("Things", [Entry("X1", "a thing", [STATEMENT, "why"], Tone.DOUBTFUL, [Entry("", "below <it>")])]),
    ),
    commands=(("More:", "ndb-conflict explain r --key 'a  b'"),),
)


def test_a_terminal_shows_the_alarm_first_and_the_warning_last() -> None:
    """Between them the answer, the figures, the things, and the sentences; after them what to type."""
    text = telling_text(TELLING)
    order = ("Contradicted", "2 rows.", "Figures", "Things", "One more", "Not checked", "More:", "ndb-conflict")
    places = [text.index(each) for each in order]
    assert places == sorted(places)
    assert r"<b>\x1b" in text
    assert "1,234" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_statement_can_be_copied() -> None:
    """Its lines have no blanks at their ends; what is below an entry stands further to the right."""
    lines = telling_text(TELLING).splitlines()
    first = next(number for number, line in enumerate(lines) if "ALTER" in line)
    assert " ".join(line.strip() for line in lines[first : lines.index("  why")]) == STATEMENT
    assert "  below <it>" in lines


def test_tones_are_colours() -> None:
    """Of a figure, and of the head of an entry."""
    out = io.StringIO()
    print_telling(Console(file=out, width=80, force_terminal=True, color_system="standard"), TELLING)
    assert re.search(r"\x1b\[31m *1,234\x1b\[0m", out.getvalue())
    assert "\x1b[33ma thing\x1b[0m" in out.getvalue()


def test_a_notebook_shows_the_same() -> None:
    """No name is markup, and cells and entries have the class of their tone."""
    shown = telling_html(TELLING)
    for text in ("Contradicted", "2 rows.", "One more thing.", "Not checked", "Things", "X1", "1,234", "More:"):
        assert text in shown
    assert r"&lt;b&gt;\x1b" in shown
    assert "below &lt;it&gt;" in shown
    assert re.search(r'<td class="number bad"[^>]*>1,234</td>', shown)
    assert '<span class="doubtful">a thing</span>' in shown


def test_a_table_that_is_too_wide_gets_closer() -> None:
    """Columns have one blank between them, before any name folds."""
    table = Table("t", ("name", *map(str, range(8))), [("x" * 19, *["refused"] * 4, *["U? D!"] * 4)], texts=9)
    lines = telling_text(Telling("t", tables=(table,))).splitlines()
    assert any("x" * 19 + " refused refused" in line for line in lines)
    assert not any("x" * 19 + "  " in line for line in lines)
