"""
What is told of a result, as HTML: for reports and notebooks.

Every text goes through `escaped`, so that no name from data becomes markup.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

import attrs

from conflict.telling.drawing import NARROW, WIDE, svg_of
from conflict.telling.shown_text import one_line, printable
from conflict.telling.value import Chart, Entry, Listing, Table, Telling, is_number, shown, tone_of

_UNIT = re.compile(r"(\d) (%|ms\b|s\b|[kMGT]B\b)")
_CODE = re.compile("`([^`]+)`")
_SHORT = 28  # characters that stay on one line of a table
_PADDING = 2  # characters that the space between two columns takes
_NARROW_LINE = 44  # characters of a table beside each other that a page of 400 pixels has room for


@attrs.frozen
class Html:
    """Markup that is safe to put into a page."""

    text: str


def escaped(text: object) -> str:
    """Return a text as it stands in a page, in an element or in quotation marks."""
    return html.escape(printable(str(text)))


def element(name: str, *content: Html | object, **attributes: str) -> Html:
    """
    Return an element.

    Args:
        name: Its name.
        content: What stands in it: markup, or anything else as escaped text.
        attributes: Its attributes; an underscore at the end of a name is left out, others become hyphens.
    """
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{escaped(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{given}>{joined(content).text}</{name}>")


def joined(content: Iterable[Html | object]) -> Html:
    """Return markup and texts one after the other."""
    return Html("".join(each.text if isinstance(each, Html) else escaped(each) for each in content))


def telling_html(telling: Telling) -> str:
    """Return what a notebook shows of a result: all but the charts."""
    lines = ((*telling.alarms, *telling.said), telling.warnings)
    before, after = (joined(element("p", each) for each in texts) for texts in lines)
    commands = [element("p", what, " ", element("code", command)) for what, command in telling.commands]
    body = (*map(table_html, telling.tables), *map(listing_html, telling.listings))
    return joined((before, *body, after, *commands)).text


def listing_html(listing: Listing) -> Html:
    """Return entries with their title."""
    title = element("h3", listing.title) if listing.title and listing.entries else ""
    return joined((title, element("ul", *map(_entry, listing.entries))))


def _entry(entry: Entry) -> Html:
    head = element("span", entry.head, **_classes(entry.tone.value if entry.tone else ""))
    lines = (element("div", sentence(line)) for line in entry.lines)
    below = [element("ul", *map(_entry, entry.entries))] * bool(entry.entries)
    return element("li", element("b", entry.label), " ", head, *lines, *below)


def sentence(text: str) -> Html:
    """Return sentences in which no line ends inside of code, or between a number and its unit."""
    pieces = _CODE.split(_UNIT.sub("\\1\u00a0\\2", text))
    return joined(element("code", each) if place % 2 else each for place, each in enumerate(pieces))


def picture(title: str, wide: str, narrow: str, note: Html | str = "") -> Html:
    """Return a picture with its title, as SVG for a wide page and for a narrow one."""
    both = (element("div", Html(svg), class_=name) for name, svg in (("wide", wide), ("narrow", narrow)))
    return element("figure", element("h3", title), *both, element("figcaption", note) if note else "")


def figure(chart: Chart) -> Html:
    """Return a chart, wide and narrow; a sentence where it shows a single number."""
    if chart.in_words:
        said, note = element("p", chart.in_words), element("figcaption", chart.note)
        return joined((element("h3", chart.title), element("figure", said, note) if chart.note else said))
    return picture(chart.title, svg_of(chart, WIDE), svg_of(chart, NARROW), chart.note)


def table_html(table: Table) -> Html:
    """Return a table with its title."""
    numeric = [
        any(is_number(row[place]) for row in table.rows)
        and all(row[place] is None or is_number(row[place]) for row in table.rows)
        for place in range(len(table.headings))
    ]
    classes = ["number" if each else "" for each in numeric]
    headings = zip(table.headings, classes, strict=True)
    names = (element("th", name, scope="col", **_classes(given)) for name, given in headings)
    rows = (_row(table, number, classes) for number in range(len(table.rows)))
    whole = element(
        "table",
        element("thead", element("tr", *names)),
        element("tbody", *rows),
        **_classes(_fit(table), "even" if table.even else ""),
    )
    note = element("p", table.note, class_="note") if table.note else ""
    return joined((element("h3", table.title), note, element("div", whole, class_="scroll")))


def _fit(table: Table) -> str:
    """Return the class of a table that is too wide for a telephone: a narrow page shows its rows as lists."""
    cells = zip(table.headings, *table.rows, strict=True)
    width = sum(_PADDING + max(len(shown(cell)) for cell in column) for column in cells)
    return "broad" if width > _NARROW_LINE else ""


def _row(table: Table, number: int, classes: Sequence[str]) -> Html:
    """Return a row of a table, the marked one with its mark."""
    row, column = table.marked or (None, None)
    cells = [
        _cell(table, number, place, f"{given} marked" if (number, place) == (row, column) else given)
        for place, given in enumerate(classes)
    ]
    return element("tr", *cells, **({"class_": "marked"} if number == row and column is None else {}))


def _cell(table: Table, row: int, place: int, given: str) -> Html:
    """Return a cell with the heading of its column, which a narrow page shows beside it."""
    text, tone = one_line(table.text(row, place)), tone_of(table.rows[row][place])
    short = "short" if len(text) <= _SHORT and "number" not in given else ""
    return element("td", text, **_classes(short, given, tone.value if tone else ""), data_of=table.headings[place])


def _classes(*names: str) -> dict[str, str]:
    found = " ".join(" ".join(names).split())
    return {"class_": found} if found else {}
