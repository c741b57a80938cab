"""
What docs/records.md tells to run in MySQL loads every record as it is.

`make test-mysql` runs this; the name keeps it out of other test runs. MySQL is at `MYSQL_SOCKET`, with
`local_infile=ON`; `MYSQL` is its client.
"""

import json
import re
import subprocess
from pathlib import Path

import conflict
from conflict.operating.records.layout import json_lines
from tests.corpora import DEMO
from tests.mysql_server.server import given_server

PAGE = Path(__file__).parents[2] / "docs/records.md"
DATABASE = "ndb_conflict_records"


def test_all_records_are_loaded(tmp_path: Path) -> None:
    """Those of the demo, and one with the highest integer and with characters that LOAD DATA could take for its own."""
    server = given_server()
    result = conflict.resolve(DEMO / "run.toml", out=tmp_path / "result", engine="reference")
    lines = b"".join(map(json_lines, conflict.records(result))).decode().splitlines()
    odd = {**json.loads(lines[0]), "time": None, "after": {"u": 2**64 - 1, "t": 'a\t"\\\n\u2028é'}}
    lines.append(json.dumps(odd, ensure_ascii=False))
    (tmp_path / "build").mkdir()
    (tmp_path / "build/records.jsonl").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    statements = re.findall(r"^```sql\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)[1]
    start = f"DROP DATABASE IF EXISTS {DATABASE}; CREATE DATABASE {DATABASE}; USE {DATABASE};"
    end = f"SELECT record FROM records ORDER BY id; DROP DATABASE {DATABASE}"
    setup = server.setup
    options = ["--no-defaults", "--socket", setup.socket, "--user", setup.user, "--local-infile=1"]
    shown = ["--batch", "--raw", "--skip-column-names", "--default-character-set=utf8mb4"]
    command = [setup.client, *options, *shown, "--execute", f"{start}{statements}{end}"]
    output = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    printed = output.rstrip("\n").split("\n")
    assert [json.loads(line) for line in printed[-len(lines) :]] == [json.loads(line) for line in lines]
    counts = [line.split("\t") for line in printed[: -len(lines)]]
    assert sum(int(count) for *_, count in counts) == result.summary.conflicts
