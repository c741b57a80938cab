"""
Record random pairs of texts, and whether a real MySQL server says that they are equal, for tests without a server.

    MYSQL_SOCKET=... python -m tests.mysql_server.record_pairs tests/recordings/collations/pairs.jsonl.xz [PAIRS] [SEED]

A line of the file has a collation and its pairs, as hexadecimal digits, with 1 for those that are equal. Half of the
pairs are equal, as far as enough such pairs are found.
"""

import json
import lzma
import sys
from pathlib import Path

from tests.mysql_server.check_collations import COLLATIONS, equal_on
from tests.mysql_server.random_pairs import PairMaker
from tests.mysql_server.server import Server


def main(path: str, count: str = "60", seed: str = "1") -> None:
    """Write the file."""
    server, lines = Server.from_environment(), []
    for collation in COLLATIONS:
        pairs = [(one, two) for one, two in PairMaker(collation, int(seed)).pairs(10 * int(count)) if one != two]
        answers = zip(pairs, equal_on(server, collation, pairs), strict=True)
        recorded = [[one.hex(), two.hex(), int(answer)] for (one, two), answer in answers if answer is not None]
        half = int(count) // 2
        kept = [each for each in recorded if each[2]][:half] + [each for each in recorded if not each[2]][:half]
        lines.append(json.dumps({"collation": collation, "pairs": kept}, separators=(",", ":")))
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(lzma.compress("".join(f"{line}\n" for line in lines).encode(), preset=9))


if __name__ == "__main__":
    main(*sys.argv[1:])
