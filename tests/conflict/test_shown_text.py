"""Text from binlogs, files and paths as people see it."""

import io
import re

import pyarrow as pa
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from conflict.cli.refusals import PlainConsole, refusing_bad_input
from conflict.decoding.table_files import no_formulas
from conflict.errors import ConfigurationError
from conflict.telling.shown_text import percent, printable, short_names


@pytest.mark.parametrize(
    ("share", "digits", "shown"),
    [
        (0, 1, "0.0 %"),
        (350 / 1_048_932, 0, "0.03 %"),
        (0.0004, 1, "0.04 %"),
        (0.00001, 1, "<0.01 %"),
        (0.004, 0, "0.4 %"),
        (0.0006, 1, "0.1 %"),
        (0.123, 0, "12 %"),
        (0.999, 0, "99.9 %"),
        (0.99999, 0, ">99.99 %"),
        (1, 0, "100 %"),
        (1.00001, 0, ">100 %"),
        (12.5, 0, "1250 %"),
        (0.12345, None, "12.3 %"),
        (0.05, None, "5 %"),
        (0.0000003, None, "<0.01 %"),
        (0.9997, None, "99.97 %"),
    ],
)
def test_a_share(share: float, digits: int | None, shown: str):
    """Only nothing is 0 %, and only the whole is 100 %."""
    assert percent(share, digits) == shown


@given(st.integers(0, 10**12), st.integers(1, 10**12), st.sampled_from([None, 0, 1, 2, 3]))
def test_a_share_is_never_rounded_to_nothing_or_all(part: int, whole: int, digits: int | None):
    """What it says is what is so, to half of the last digit that is shown; a bound is one."""
    share, shown = part / whole, percent(part / whole, digits)
    sign, number = re.fullmatch(r"([<>]?)([\d.e+]+) %", shown).groups()
    if sign:
        assert (0 < 100 * share < float(number)) if sign == "<" else (100 * share > float(number) and share != 1)
    else:
        assert (float(number) == 0) == (part == 0)
        assert (float(number) == 100) == (part == whole)
        assert float(number) == pytest.approx(100 * share, rel=0.006, abs=0.5)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 語", "plain é 語"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("a\rb\x7f\x9b", r"a\x0db\x7f\x9b"),
        ("\u202etxt.exe\u2066", r"\u202etxt.exe\u2066"),
        ("\udcff", r"\udcff"),
    ],
)
def test_hidden_characters_are_escaped(text: str, shown: str):
    """Control characters of both ranges, changes of direction, and bytes that are no text."""
    assert printable(text) == shown


@given(st.text(st.characters(max_codepoint=0x2100, exclude_categories=[])))
def test_what_is_shown_is_harmless(text: str):
    """Nothing but line feeds and tabs is left of the control characters, and showing twice changes nothing."""
    shown = printable(text)
    assert not any(ord(each) < 0x20 or 0x7F <= ord(each) < 0xA0 for each in shown if each not in "\n\t")
    assert not set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b") & set(shown)
    assert printable(shown) == shown


def test_the_terminal_gets_no_control_characters():
    """Whatever is printed; ``:x:`` is no picture."""
    out = io.StringIO()
    PlainConsole(file=out, width=200).print("[red]table[/red] \x1b]0;title :x: nope:x")
    assert out.getvalue() == "table \\x1b]0;title :x: nope:x\n"


def test_a_refusal_is_plain_text(capsys: pytest.CaptureFixture[str]):
    """Markup and control characters of a name in it are shown."""

    def command() -> None:
        message = "table [red]\x1b[2J[/] is not known"
        raise ConfigurationError(message)

    with pytest.raises(typer.Exit):
        refusing_bad_input(command)()
    assert "table [red]\\x1b[2J[/] is not known" in " ".join(capsys.readouterr().err.split())


def test_formulas_in_csv():
    """Have a mark before them; numbers, phone numbers and negative times have none."""
    formulas = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "'=1"]
    others = ["-5", "+49 30 1234", "-838:59:59", "a=b", "", None]
    assert no_formulas(pa.array([*formulas, *others])).to_pylist() == [*(f"'{text}" for text in formulas), *others]
    assert no_formulas(pa.chunked_array([["", "x"]])).to_pylist() == ["", "x"]


def test_files_with_the_same_name_are_told_apart() -> None:
    """By as many folders as it takes; others have their names alone."""
    paths = ["/l/A/binlog.1", "/l/B/binlog.1", "/l/B/binlog.2", "/m/B/binlog.3", "/n/B/binlog.3", "/l/A/binlog.1"]
    assert short_names(paths) == {
        "/l/A/binlog.1": "A/binlog.1",
        "/l/B/binlog.1": "B/binlog.1",
        "/l/B/binlog.2": "binlog.2",
        "/m/B/binlog.3": "m/B/binlog.3",
        "/n/B/binlog.3": "n/B/binlog.3",
    }
