"""
Record random definitions, as servers logged them, and what their information_schema says, for tests without a server.

    MYSQL_SOCKET=... MARIADB_SOCKET=... python -m tests.mysql_server.record_definitions \\
        tests/recordings/definitions/definitions.jsonl.xz [CASES] [SEED]

A line has the version of a server, its database, and the steps of a case: the bodies of the Query events of a
statement as hexadecimal digits, and the tables after it. The first step makes the database. A case in which a
definition comes out differently is left out, and counted: `check_definitions` shows these.
"""

import json
import lzma
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import attrs

from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import EventType
from tests.mysql_server.definition_judge import Accepted, DefinitionServer, followed
from tests.mysql_server.definition_parts import DATABASES
from tests.mysql_server.definition_texts import DefinitionMaker


def main(path: str, count: str = "220", seed: str = "1") -> None:
    """Write the file."""
    lines = list[str]()
    for socket in ("MYSQL_SOCKET", "MARIADB_SOCKET"):
        server = DefinitionServer(os.environ[socket])
        log, accepted, _ = server.run(DefinitionMaker(int(seed), mariadb=server.mariadb).cases(int(count)))
        different = {id(each.accepted.case) for each in followed(log, accepted)}
        sys.stdout.write(f"{socket}: {len(accepted)} texts accepted, {len(different)} cases left out\n")
        lines += [json.dumps(each, separators=(",", ":")) for each in recorded(log, accepted, different)]
        server.close()
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(lzma.compress("".join(f"{line}\n" for line in lines).encode(), preset=9))


def recorded(log: Path, accepted: Sequence[Accepted], different: set[int]) -> Iterator[dict[str, object]]:
    """Yield the lines of a log, without the cases that came out differently."""
    events = [event for event in read_events(log) if event.type is EventType.QUERY_EVENT]
    created = dict(zip(DATABASES, events, strict=False))
    for _, group in groupby(accepted, key=lambda each: id(each.case)):
        answers = list(group)
        case = answers[0].case
        if id(case) in different:
            continue
        first = [each.end for each in accepted if each.end < answers[0].end]
        steps, start = [[[created[case.database].body.hex()], {}]], max(first, default=0)
        for answer in answers:
            bodies = [event.body.hex() for event in events if start < event.end <= answer.end]
            steps.append([bodies, {name: attrs.astuple(shape) for name, shape in answer.shapes.items()}])
            start = answer.end
        yield {"server": events[0].server, "database": case.database, "steps": steps}


if __name__ == "__main__":
    main(*sys.argv[1:])
