"""
Definitions that a real server accepts, followed along its log, are those of its information_schema.

`make test-mysql` runs this; the name keeps it out of other test runs. `DEFINITION_CASES` is how many cases are made,
`SEED` repeats a run. MySQL is at `MYSQL_SOCKET`, MariaDB at `MARIADB_SOCKET`; the account has no password, and the log
of the server is read where it is.
"""

import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import product

import pytest

from tests.mysql_server import definition_parts as parts
from tests.mysql_server.definition_judge import DefinitionServer, followed
from tests.mysql_server.definition_texts import Case, DefinitionMaker

CASES = int(os.environ.get("DEFINITION_CASES", "3000"))
SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))
_SHOWN = 30
# Twelve character sets of clients and eight modes, for 60 statements each.
_CHARSETS = ("utf8mb4", "latin1", "latin2", "cp1251", "koi8r", "greek", "gbk", "big5", "sjis", "cp932", "euckr", "ujis")
_MODES = parts.MODES[:8]
_STATEMENTS = 60


@pytest.fixture(scope="module", params=["MYSQL_SOCKET", "MARIADB_SOCKET"])
def server(request: pytest.FixtureRequest) -> Iterator[DefinitionServer]:
    """Yield a server; end the run if its socket is not given."""
    socket = os.environ.get(request.param, "")
    if not socket:
        pytest.exit(f"{request.param} is not set: make test-mysql MYSQL_SOCKET=... MARIADB_SOCKET=...", returncode=2)
    found = DefinitionServer(socket, os.environ.get("MYSQL_USER") or "root")
    yield found
    found.close()


def judge(server: DefinitionServer, cases: Iterator[Case], capsys: pytest.CaptureFixture[str]) -> None:
    """Run cases, and show what disagrees."""
    log, accepted, refused = server.run(cases)
    found = list(followed(log, accepted))
    wrong = {id(each.accepted) for each in found}
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(each.kind for each in found).most_common())
    with capsys.disabled():
        sys.stdout.write(
            f"\nseed {SEED}: {len(accepted)} texts accepted, {refused} refused; {len(wrong)} came out differently"
            f"{f' ({kinds})' if kinds else ''}\n"
        )
    lines = [f"{each.kind}: {each.mine} | {each.theirs} | {each.accepted.statement}" for each in found[:_SHOWN]]
    assert not found, "\n".join(lines)


def test_random_definitions(server: DefinitionServer, capsys: pytest.CaptureFixture[str]):
    """Random definitions come out as the server has them."""
    judge(server, DefinitionMaker(SEED, mariadb=server.mariadb).cases(CASES), capsys)


def test_character_sets_and_modes(server: DefinitionServer, capsys: pytest.CaptureFixture[str]):
    """Names and members in every character set of a client, under every mode, are those of the server."""
    maker = DefinitionMaker(SEED, mariadb=server.mariadb)
    sessions = product(_CHARSETS, _MODES)
    judge(server, (maker.case(*each) for each in sessions for _ in range(_STATEMENTS)), capsys)
