"""
What a MySQL server says of the weights of texts.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import attrs

from tools.collation_elements import levels_of

__all__ = ["GUARD", "CollationFacts", "WeightServer"]

# Stands around texts that are asked for: the Japanese collations take the end of a text for what precedes its start.
GUARD = "0"

_SURROGATES = "BETWEEN 0xD800 AND 0xDFFF"
_ROWS_AT_ONCE = 20_000
Levels = tuple[tuple[bytes, ...], ...]


class CollationFacts(NamedTuple):
    """A row of `information_schema.COLLATIONS`."""

    name: str
    charset: str
    pads: bool


@attrs.frozen
class WeightServer:
    """
    A server that is asked for weights.

    Attributes:
        socket: Its socket.
        client: The program mysql.
        user: Who connects; ``MYSQL_PWD`` is the password.
    """

    socket: str
    client: str = "mysql"
    user: str = "root"

    def rows(self, sql: str) -> Iterator[list[str]]:
        """Run statements and yield the rows of their results."""
        options = ["--no-defaults", f"--user={self.user}", f"--socket={self.socket}", "--default-character-set=utf8mb4"]
        options += ["--batch", "--skip-column-names", "--quick"]
        done = subprocess.run([self.client, *options], input=sql.encode(), capture_output=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr.decode("utf-8", "replace"))
        return (line.split("\t") for line in done.stdout.decode().splitlines())

    def collations(self) -> list[CollationFacts]:
        """Return the collations that the server has."""
        sql = "SELECT collation_name, character_set_name, pad_attribute FROM information_schema.collations ORDER BY id"
        return [CollationFacts(name, charset, pad == "PAD SPACE") for name, charset, pad in self.rows(sql)]

    def set_up(self, database: str) -> None:
        """Make a database with all characters of Unicode: `chars(cp, c)`."""
        number = "CONVERT(CHAR(i USING utf32) USING utf8mb4)"
        sql = f"""
            SET sql_log_bin = 0; CREATE DATABASE {database}; USE {database}; SET cte_max_recursion_depth = 2000000;
            CREATE TABLE chars (cp INT PRIMARY KEY, c VARCHAR(1) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin);
            INSERT INTO chars WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 0x10FFFF)
                SELECT i, {number} FROM n WHERE i NOT {_SURROGATES};
        """
        self.rows(sql)

    def drop(self, database: str) -> None:
        """Remove what `set_up` made."""
        self.rows(f"SET sql_log_bin = 0; DROP DATABASE IF EXISTS {database};")

    def weights(self, database: str, collation: str, base: str | None = None) -> dict[str, bytes]:
        """Return the weights of all characters of utf8mb4; of those alone that differ from `base`, if that is given."""
        weight = f"WEIGHT_STRING(c COLLATE {collation})"
        where = f" WHERE {weight} <> WEIGHT_STRING(c COLLATE {base})" if base else ""
        sql = f"SELECT cp, HEX({weight}) FROM {database}.chars{where};"
        return {chr(int(number)): bytes.fromhex(digits) for number, digits in self.rows(sql)}

    def weights_of(self, payloads: Sequence[bytes], charset: str, collation: str) -> list[bytes]:
        """Return the weights of texts in a character set, given as their bytes in utf8mb4."""
        found: list[bytes] = []
        for start in range(0, len(payloads), _ROWS_AT_ONCE):
            rows = ",".join(f"ROW(0x{payload.hex()})" for payload in payloads[start : start + _ROWS_AT_ONCE])
            text = f"CONVERT(CONVERT(column_0 USING utf8mb4) USING {charset})"
            sql = f"SELECT HEX(WEIGHT_STRING({text} COLLATE {collation})) FROM (VALUES {rows}) AS v;"
            found += [bytes.fromhex(row[0]) for row in self.rows(sql)]
        return found

    def weights_of_bytes(self, payloads: Sequence[bytes], charset: str, collation: str) -> list[bytes]:
        """Return the weights of texts, given as their bytes in their own character set."""
        found: list[bytes] = []
        for start in range(0, len(payloads), _ROWS_AT_ONCE):
            rows = ",".join(f"ROW(0x{payload.hex()})" for payload in payloads[start : start + _ROWS_AT_ONCE])
            text = f"CONVERT(CAST(column_0 AS CHAR CHARACTER SET binary) USING {charset})"
            sql = f"SELECT HEX(WEIGHT_STRING({text} COLLATE {collation})) FROM (VALUES {rows}) AS v;"
            found += [bytes.fromhex(row[0]) for row in self.rows(sql)]
        return found

    def odd_pairs(self, database: str, collation: str, units: Iterable[tuple[str, Levels]]) -> list[str]:
        """
        Return the pairs of characters that weigh other than the two of them, within a text.

        Args:
            database: See `set_up`.
            collation: The collation.
            units: Characters, and the weights of each level.
        """
        rows = [(unit.encode().hex(), [b"".join(level).hex() for level in levels]) for unit, levels in units]
        depth = len(rows[0][1])
        columns = ", ".join(f"l{level} VARBINARY(300)" for level in range(depth))
        values = ",".join(f"(0x{unit},{','.join(f'UNHEX({level!r})' for level in levels)})" for unit, levels in rows)
        weight = f"WEIGHT_STRING(CONCAT('{GUARD}', a.c, b.c, '{GUARD}') COLLATE {collation})"
        guard = levels_of(self.weights_of([GUARD.encode()], "utf8mb4", collation)[0], depth)
        outer = [f"UNHEX('{b''.join(level).hex()}')" for level in guard]
        parts = ", 0x0000, ".join(f"{outer[level]}, a.l{level}, b.l{level}, {outer[level]}" for level in range(depth))
        sql = f"""
            SET sql_log_bin = 0; USE {database}; DROP TEMPORARY TABLE IF EXISTS cand, cand2;
            CREATE TEMPORARY TABLE cand (c VARCHAR(1) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, {columns});
            INSERT INTO cand VALUES {values};
            CREATE TEMPORARY TABLE cand2 AS SELECT * FROM cand;
            SELECT HEX(CONCAT(a.c, b.c)) FROM cand a CROSS JOIN cand2 b WHERE {weight} <> CONCAT({parts});
        """
        return [bytes.fromhex(pair).decode() for (pair,) in self.rows(sql)]
