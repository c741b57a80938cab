"""
The generated parts of the pages: tables on five pages of docs/, and the README's picture.

    python -m tools.generated_parts

Which events a release added to its binlogs is from the lists of events in the servers' sources; which of them are
refused, the readers say; which servers wrote recordings, their Format_description events say.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

import conflict
from conflict.checking.findings import CODES
from conflict.checking.rules.releases import RELEASES
from conflict.checking.rules.settings import codes_of
from conflict.engine.ledger.careful import CareKind
from conflict.explaining.picture import draw_story
from conflict.rules.server_variables import VARIABLES, Effect, ServerVariable
from ndb_formats.binlog_reader import Event, read_events
from ndb_formats.constants import BINLOG_MAGIC, EventType
from ndb_formats.errors import FormatError, UnsupportedError
from ndb_formats.events.header import EventHeader
from ndb_formats.schema.ndb_copies import RULES
from ndb_formats.selection import DecodingState, decode_event

__all__ = [
    "LINES",
    "PICTURE",
    "PLACE",
    "careful_table",
    "copies_table",
    "draw",
    "findings_tables",
    "releases_table",
    "servers_table",
    "settings_tables",
]

ROOT = Path(__file__).parents[1]
SERVERS, JOBS, FINDINGS, SETTINGS, DEFINITIONS = (
    ROOT / "docs" / f"{name}.md" for name in ("servers", "jobs", "findings", "settings", "definitions")
)
PICTURE = ROOT / "docs" / "pictures" / "rejected-update.svg"
PLACE = re.compile(r"(<!-- tools/generated_parts.py -->\n)(?:\|.*\|\n)*")
RECORDINGS = (ROOT / "conflict" / "demo", ROOT / "tests" / "recordings")


@attrs.frozen
class Line:
    """
    Servers with the same events in their binlogs.

    Attributes:
        name: What they are called.
        before: Major and minor version of the first server that is none of them; None for MariaDB.
        events: The events that they were the first to write.
    """

    name: str
    before: tuple[int, int] | None
    events: tuple[EventType, ...]


LINES = (
    Line("MySQL 5.1 and 5.5", (5, 6), tuple(map(EventType, range(20, 28)))),
    Line("MySQL 5.6", (5, 7), tuple(map(EventType, range(28, 36)))),
    Line("MySQL 5.7", (8, 0), tuple(map(EventType, range(36, 39)))),
    Line("MySQL 8.0", (8, 1), tuple(map(EventType, range(39, 42)))),
    Line("MySQL 8.1 to 8.4", (9, 0), (EventType.GTID_TAGGED_LOG_EVENT,)),
    Line("MySQL 9", (10, 0), ()),
    Line("MariaDB", None, tuple(kind for kind in EventType if kind >= EventType.MARIADB_ANNOTATE_ROWS_EVENT)),
)


def servers_table() -> str:
    """Return the table: per line of servers, its new events, those that are refused, and the recordings."""
    counts: dict[str, Counter[str]] = {line.name: Counter() for line in LINES}
    for version in _versions():
        counts[_line_of(version)][version] += 1
    rows = [
        "| servers | events that they were the first to write | of these refused | binlogs in the tests, by version |",
        "|---|---|---|---|",
    ]
    for line in LINES:
        refused = [kind for kind in line.events if _is_refused(kind)]
        files = [f"{version}: {number}" for version, number in sorted(counts[line.name].items())]
        cells = (line.name, _names(line.events), _names(refused), ", ".join(files) or "none")
        rows.append(f"| {' | '.join(cells)} |")
    return "".join(f"{row}\n" for row in rows)


def careful_table(*, whole: bool) -> str:
    """Return the table: which rows the reference engine resolves for the columnar engine, or (whole) which runs."""
    rows = ["| all rows of a run, if |" if whole else "| only the rows |", "|---|"]
    rows += [f"| {kind.what} |" for kind in (each.value for each in CareKind) if kind.whole is whole]
    return "".join(f"{row}\n" for row in rows)


def copies_table() -> str:
    """Return the table: when NDB copies the rows of a table."""
    return "".join(f"{row}\n" for row in ("| by copy if |", "|---|", *(f"| {what} |" for what, _ in RULES)))


def findings_tables() -> tuple[str, str, str]:
    """Return three tables: the codes of a configuration, those of a replica, and the manual's conditions of these."""
    configuration = ["| code | severity | finding |", f"|{'---|' * 3}"]
    replica = ["| code | severity | effect | finding |", f"|{'---|' * 4}"]
    conditions: dict[tuple[str, str], list[str]] = {}
    for kind in CODES:
        title = kind.title if kind.error is None else f"{kind.title} ({int(kind.error)})"
        code = f'<a id="{kind.code.lower()}"></a>{kind.code}'
        if kind.rule is None:
            configuration.append(f"| {code} | {kind.severity} | {title} |")
        else:
            replica.append(f"| {code} | {kind.severity} | {kind.rule.effect.name.lower()} | {title} |")
            conditions.setdefault((kind.rule.condition, kind.rule.page), []).append(kind.code)
    of_manual = ["| condition | findings | page |", f"|{'---|' * 3}"]
    of_manual += [f"| {condition} | {_links(codes)} | {page} |" for (condition, page), codes in conditions.items()]
    first, second, third = ("".join(f"{row}\n" for row in rows) for rows in (configuration, replica, of_manual))
    return first, second, third


def _links(codes: Iterable[str]) -> str:
    """Return codes of findings with links to them."""
    return ", ".join(f"[{code}](findings.md#{code.lower()})" for code in codes)


def settings_tables() -> tuple[str, str, str]:
    """Return a table per effect: the variables of replication and of NDB that are judged, not known and harmless."""
    judged, unknown, harmless = (_variables_of(effect) for effect in (Effect.JUDGED, Effect.OPEN, Effect.HARMLESS))
    return judged, unknown, harmless


def _variables_of(effect: Effect) -> str:
    """Return the table of the variables of one effect; those with the same codes and note share a row."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for each in VARIABLES:
        if each.effect is effect:
            codes = (_links(code.code for code in codes_of(each.name)),) if effect is Effect.JUDGED else ()
            alike.setdefault((*codes, each.note), []).append(_name_of(each))
    headings = ("variables", "found as", "what it is") if effect is Effect.JUDGED else ("variables", "what it is")
    rows = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    rows += [f"| {', '.join(names)} | {' | '.join(cells)} |" for cells, names in alike.items()]
    return "".join(f"{row}\n" for row in rows)


def _name_of(variable: ServerVariable) -> str:
    """Return its name, and in parentheses its older one, or the releases that have it."""
    since, until = variable.since, variable.until
    if variable.older:
        said = f"`{variable.older}`" if since == "8.0.26" else f"before {since} `{variable.older}`"
    else:
        said = " ".join((*((f"from {since}",) if since else ()), *((f"before {until}",) if until else ())))
    return f"`{variable.name}`" + (f" ({said})" if said else "")


def releases_table() -> str:
    """Return the table: what differs by release, and where that is said."""
    rows = ["| before | what is different | found as | source |", "|---|---|---|---|"]
    for each in RELEASES:
        page = each.source.rpartition("/")[2].removesuffix(".html")
        cells = (
            ".".join(map(str, each.since)),
            each.before,
            "" if each.code is None else _links([each.code.code]),
            f"[{page}]({each.source})",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "".join(f"{row}\n" for row in rows)


def draw(path: Path) -> None:
    """Draw the story of a row of the demo that lost an update."""
    with tempfile.TemporaryDirectory() as folder:
        result = conflict.resolve(RECORDINGS[0] / "run.toml", out=Path(folder) / "result", engine="reference")
        draw_story(conflict.explain(result, table="cft.t1", key={"k": 2}), path)


def _versions() -> Iterator[str]:
    """Yield which server wrote each binlog among the recordings."""
    for folder in RECORDINGS:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.open("rb").read(4) == BINLOG_MAGIC:
                yield next(event.server for event in read_events(path) if event.server)


def _line_of(version: str) -> str:
    if "MariaDB" in version:
        return LINES[-1].name
    major, minor = map(int, version.split(".")[:2])
    return next(line.name for line in LINES if line.before is not None and (major, minor) < line.before)


def _is_refused(kind: EventType) -> bool:
    """Whether an event is refused for its type alone."""
    try:
        decode_event(Event("binlog.000001", 4, EventHeader(0, kind, 1, 19, 23, 0), b""), DecodingState())
    except UnsupportedError:
        return True
    except FormatError:
        return False  # it is read, and has no body here
    return False


def _names(kinds: tuple[EventType, ...] | list[EventType]) -> str:
    """Return the names of events, without the words that all have."""
    return ", ".join(f"`{kind.name.removeprefix('MARIADB_').removesuffix('_EVENT')}`" for kind in kinds) or "none"


def _filled(text: str, tables: tuple[str, ...]) -> str:
    """Return the text of a page with its tables at their places."""
    places = iter(tables)
    return PLACE.sub(lambda found: found[1] + next(places), text)


def main() -> None:
    """Write what is generated."""
    pages: dict[Path, tuple[str, ...]] = {
        SERVERS: (servers_table(),),
        JOBS: (careful_table(whole=False), careful_table(whole=True)),
        FINDINGS: findings_tables(),
        SETTINGS: (releases_table(), *settings_tables()),
        DEFINITIONS: (copies_table(),),
    }
    for page, tables in pages.items():
        page.write_text(_filled(page.read_text("utf-8"), tables), "utf-8")
    PICTURE.parent.mkdir(exist_ok=True)
    draw(PICTURE)


if __name__ == "__main__":
    main()
