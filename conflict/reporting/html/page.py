"""
A report as one page of HTML that asks for nothing outside itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from conflict.reporting.html.glossary import words_explained
from conflict.telling.html import Html, element, escaped, figure, joined, listing_html, picture, sentence, table_html
from conflict.telling.palette import DARK, LIGHT
from conflict.telling.part import Headline, Part
from conflict.telling.value import Table

_STYLE = """
:root { color-scheme: light dark; LIGHT }
@media (prefers-color-scheme: dark) { :root { DARK } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 78rem; margin: 0 auto; padding: 1rem; }
section, header { background: var(--paper); border: 1px solid var(--faint); border-radius: 8px;
  padding: 1rem 1.25rem; margin-bottom: 1rem; }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; } h2 { font-size: 1.3rem; margin: 0 0 .5rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; }
h1, h2, h3, p, li, dd { overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: minmax(6rem, max-content) 1fr; gap: .1rem 1rem; margin: .5rem 0; }
dt { color: var(--quiet); } dd { margin: 0; }
figure, p, ul, dl { max-width: 60rem; }
.answer { font-size: 1.05rem; } .answer li { margin: .25rem 0; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 1rem; }
article { border-top: 4px solid var(--line); padding-top: .5rem; min-width: 0; }
article h2 { font-size: 1rem; font-weight: 600; color: var(--quiet); margin: 0; }
article p { margin: .4rem 0; } article .figure { font-size: 1.45rem; font-weight: 650; line-height: 1.25; }
code { white-space: nowrap; }
.warning { background: var(--mark); border-radius: 6px; padding: .5rem .75rem; }
.note, figcaption { color: var(--quiet); font-size: .875rem; margin: .25rem 0; }
figure { margin: 0; } .narrow { display: none; } svg { display: block; height: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--faint); text-align: left; vertical-align: top; }
th { font-weight: 600; vertical-align: bottom; } td.number, th.number { text-align: right; }
td.number { white-space: nowrap; }
td.short { white-space: nowrap; }
.even { table-layout: fixed; width: 100%; } .even th:first-child { width: 4rem; } .even td { white-space: normal; }
tr.marked td, td.marked { background: var(--mark); }
.bad { color: var(--bad); } .doubtful { color: var(--doubtful); } .good { color: var(--good); }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8rem; }
summary { cursor: pointer; color: var(--quiet); }
a { color: inherit; }
@media (max-width: 40rem) {
  main { padding: .5rem; } section, header { padding: .75rem; }
  .wide { display: none; } .narrow { display: block; }
  code { white-space: normal; overflow-wrap: anywhere; }
  dl { grid-template-columns: 1fr; } dd { margin-bottom: .4rem; }
  td, th { padding: .3rem .4rem; }
  .broad thead { display: none; } .broad, .broad tbody, .broad tr { display: block; }
  .broad tr { padding: .35rem 0; border-bottom: 1px solid var(--faint); }
  .broad td, .broad td.number { display: flex; gap: 1rem; justify-content: space-between; border: 0;
    padding: .1rem .4rem; white-space: normal; overflow-wrap: anywhere; text-align: right; }
  .broad td::before { content: attr(data-of); color: var(--quiet); text-align: left; flex: none; max-width: 60%; }
  .broad td:first-child { font-weight: 600; justify-content: flex-start; text-align: left; }
  .broad td:first-child::before, .broad td:empty { display: none; }
}
"""
_WORDS, _GLOSSARY = "What the words mean", "words"
# No script, and nothing from elsewhere, whatever stands in the page.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page_of(title: str, parts: Sequence[Part]) -> str:
    """Return the page of a report with these parts."""
    head = (
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{escaped(_POLICY)}">'),
        element("title", title),
        element("style", Html(_style())),
    )
    glossary = _glossary(parts)
    top = element("header", element("h1", title), *_top(parts), _contents(parts, glossary))
    sections = [_section(part, number) for number, part in enumerate(parts, 1)]
    body = element("body", element("main", top, *sections, glossary))
    return "<!DOCTYPE html>\n" + element("html", element("head", *head), body, lang="en").text + "\n"


def _style() -> str:
    light, dark = (" ".join(f"--{name}: {colour};" for name, colour in each.items()) for each in (LIGHT, DARK))
    return _STYLE.replace("LIGHT", light).replace("DARK", dark)


def _contents(parts: Sequence[Part], glossary: Html) -> Html:
    """Return links to the parts and to the words, where there is more than one thing to go to."""
    links = [element("a", part.telling.title, href=f"#part-{number}") for number, part in enumerate(parts, 1)]
    links += [element("a", _WORDS, href=f"#{_GLOSSARY}")] * bool(glossary.text)
    between = [joined((" · ", each)) for each in links[1:]]
    return element("p", *links[:1], *between, class_="note") if between else Html("")


def _top(parts: Sequence[Part]) -> Iterator[Html]:
    """Yield what makes results doubtful, the headlines of all parts by their topics, and functions side by side."""
    for part in parts:
        for warning in (*part.telling.alarms, *part.telling.warnings):
            yield element("p", warning, class_="warning")
    lines = sorted((line for part in parts for line in part.headlines), key=lambda line: line.topic)
    if lines:
        yield element("div", *map(_headline, lines), class_="cards")
    beside = overview(parts)
    if beside is not None:
        yield table_html(beside)


def _headline(line: Headline) -> Html:
    """Return a card: question, answer, sentences, and from what they are."""
    setting = [each for each in line.setting if each]
    return element(
        "article",
        element("h2", line.question),
        element("p", sentence(line.answer), class_="figure") if line.answer else "",
        *(element("p", sentence(each)) for each in line.sentences),
        element("p", sentence(" ".join(setting)), class_="note") if setting else "",
    )


def _section(part: Part, number: int) -> Html:
    telling, configuration = part.telling, document_text(part.configuration)
    return element(
        "section",
        element("h2", telling.title),
        element("ul", *(element("li", sentence(each)) for each in telling.said), class_="answer")
        if telling.said
        else "",
        element("dl", *(_asked(name, text) for name, text in part.asked.items())),
        *map(table_html, telling.tables[:1]),
        *_example(part),
        *map(figure, telling.charts),
        *map(table_html, telling.tables[1:]),
        *map(listing_html, telling.listings),
        element("h3", "Configuration"),
        element(
            "details", element("summary", f"All that was given, from {part.source}"), element("pre", configuration)
        ),
        id=f"part-{number}",
    )


def _example(part: Part) -> Iterator[Html]:
    shown = part.example
    if shown is not None:
        note = joined(("The same in words: ", element("code", shown.command)))
        yield picture(shown.title, shown.wide, shown.narrow, note)


def _glossary(parts: Sequence[Part]) -> Html:
    """Return what the words of these parts mean."""
    tellings = [part.telling for part in parts]
    tables = [table for told in tellings for table in told.tables]
    charts = [chart for told in tellings for chart in told.charts]
    texts = [text for told in tellings for text in (*told.said, *told.alarms, *told.warnings)]
    texts += [text for part in parts for text in part.asked.values()]
    texts += [text for part in parts for line in part.headlines for text in (*line.sentences, *line.setting)]
    texts += [text for table in tables for text in (table.title, *table.headings, table.note)]
    texts += [cell for table in tables for row in table.rows for cell in row if isinstance(cell, str)]
    texts += [text for chart in charts for text in (chart.title, *chart.data.column_names, chart.note, chart.over)]
    words = words_explained("\n".join(texts))
    entries = element("dl", *(_asked(word, meaning) for word, meaning in words.items()))
    return element("section", element("h2", _WORDS), entries, id=_GLOSSARY) if words else Html("")


def _asked(name: str, text: str) -> Html:
    return joined((element("dt", name), element("dd", text)))


def overview(parts: Sequence[Part]) -> Table | None:
    """
    Return what several results say of the same functions, side by side; None if only one has functions.

    That one has tables of its own.
    """
    told = [part for part in parts if part.by_function]
    if len(told) < 2:
        return None
    columns = sorted((column for part in told for column in part.by_function), key=lambda column: column.topic)
    names = list(dict.fromkeys(name for column in columns for name in column.cells))
    # Simulations name a function without its primary, comparisons with it.
    full = {_bare(name): name for name in names if _bare(name) != name and _is_alone(name, names)}
    rows: dict[str, list[object]] = {full.get(name, name): [] for name in names}
    for column in columns:
        cells = {full.get(name, name): cell for name, cell in column.cells.items()}
        for name, row in rows.items():
            row.append(cells.get(name))
    configured = next((part.bytes.logged.configured for part in told if part.bytes and part.bytes.logged), None)
    marked = (list(rows).index(configured), None) if configured in rows else None
    note = (
        f"As configured: {configured}. A dash: not simulated. Type: the one that takes least for certain."
        if marked
        else ""
    )
    headings = ("function", *(column.heading for column in columns))
    return Table("The functions side by side", headings, [[name, *row] for name, row in rows.items()], marked, note)


def _bare(name: str) -> str:
    """Return a function without its primary."""
    return name.partition(" @")[0]


def _is_alone(name: str, names: Iterable[str]) -> bool:
    """Whether no other cluster is the primary of the same function."""
    return sum(_bare(each) == _bare(name) and each != _bare(name) for each in names) == 1


def document_text(document: Any) -> str:
    """
    Return a document as JSON to read: an entry per line, and a list without entries of its own on one line.

    What JSON does not know stands as text.
    """
    return "\n".join(_lines(document, 0, ""))


def _lines(value: Any, depth: int, before: str) -> Iterator[str]:
    """Yield the lines of a value, `depth` blanks to the right; the first one begins with `before`."""
    blanks = " " * depth
    if isinstance(value, Mapping):
        ends, inside = "{}", [(f"{_text(str(name))}: ", each) for name, each in value.items()]
    elif isinstance(value, list | tuple):
        ends, inside = "[]", [("", each) for each in value]
    else:
        yield f"{blanks}{before}{_text(value)}"
        return
    if not any(isinstance(each, Mapping | list | tuple) for _, each in inside) and (ends == "[]" or not inside):
        yield f"{blanks}{before}{_text(value)}"
        return
    yield f"{blanks}{before}{ends[0]}"
    for number, (name, each) in enumerate(inside, 1):
        lines = list(_lines(each, depth + 1, name))
        yield from lines[:-1]
        yield lines[-1] + ("," if number < len(inside) else "")
    yield f"{blanks}{ends[1]}"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
