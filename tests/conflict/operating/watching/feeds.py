"""Recordings as logs that grow: in chunks of random sizes, in several files, now and then cut and written again."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import attrs

import conflict
from conflict.judge.case import ConflictCase
from conflict.operating.records.layout import json_lines
from ndb_formats.columnar.settled import settled_positions

_OPTIONS = ("ndb_log_update_as_write", "ndb_log_updated_only", "ndb_log_update_minimal", "ndb_log_transaction_id")


def write_run_file(case: Path, folder: Path) -> Path:
    """Write the run file of a recording, whose logs grow in the folders `A` and `B`."""
    found = ConflictCase.load(case)
    scenario = found.scenario
    charset = next(iter(scenario["globals"].values())).get("character_set_server", "utf8mb4")
    made = [text for table in scenario["tables"] for text in (table["create"], table.get("ex")) if text]
    (folder / "schema.sql").write_text(";\n".join(made) + ";\n", "utf-8")
    lines = [f'schema = "schema.sql"\ndatabase = "{scenario["database"]}"\ncharset = "{charset}"\n']
    for name, (server, *_) in found.servers.items():
        settings = scenario["globals"][server]
        lines.append(f'[clusters.{name}]\nserver_id = {settings["server_id"]}\nbinlogs = ["{name}/binlog.*"]\n')
        lines.append(f'role = "{scenario.get("roles", {}).get(name, "NONE")}"\n')
        lines += [f'{each} = "{"ON" if str(settings[each]) in ("1", "ON") else "OFF"}"\n' for each in _OPTIONS]
    for row in scenario["ndb_replication"]:
        function = "" if row["conflict_fn"] is None else f"conflict_fn = {json.dumps(row['conflict_fn'])}\n"
        lines.append(
            f"[[ndb_replication]]\ndb = {json.dumps(row['db'])}\ntable_name = {json.dumps(row['table_name'])}\n"
            f"server_id = {row['server_id']}\nbinlog_type = {row['binlog_type']}\n{function}"
        )
    (folder / "run.toml").write_text("".join(lines), "utf-8")
    for name in found.servers:
        (folder / name).mkdir()
    return folder / "run.toml"


@attrs.define
class Feed:
    """
    The logs of a recording as they grow.

    Attributes:
        run_file: The run file.
        contents: Every file, and what it holds in the end; those of a cluster in order.
        chosen: Chooses.
        chunk: Bytes that come at a time, at most.
    """

    run_file: Path
    contents: dict[str, list[tuple[Path, bytes]]]
    chosen: random.Random
    chunk: int

    @classmethod
    def of(cls, case: Path, folder: Path, seed: int, *, files: int = 3, chunk: int = 1 << 16) -> Feed:
        """Return the feed of a recording: each log in so many files, the later ones with a first event of their own."""
        run_file, found = write_run_file(case, folder), ConflictCase.load(case)
        contents = {}
        for name, (server, *_) in found.servers.items():
            (log,) = (case / file for file in found.scenario["binlog_files"][server])
            data, positions = log.read_bytes(), settled_positions(log).tolist()
            head = data[: positions[1]]
            bounds = [0, *(positions[len(positions) * part // files] for part in range(1, files)), len(data)]
            contents[name] = [
                (
                    folder / name / f"binlog.{part + 1:06}",
                    (head if part else b"") + data[bounds[part] : bounds[part + 1]],
                )
                for part in range(files)
            ]
        return cls(run_file, contents, random.Random(seed), chunk)  # repeatable

    def begin(self) -> None:
        """Let each log have its first event."""
        for (file, data), *_ in self.contents.values():
            file.write_bytes(data[:200])

    def growth(self, *, cuts: bool = False) -> Iterator[None]:
        """Let the logs grow, one chunk at a time; `cuts`: now and then the last file is written again."""
        left = {name: sum(len(data) for _, data in files) for name, files in self.contents.items()}
        total = dict(left)
        while any(left.values()):
            name = self.chosen.choices([*left], [left[each] for each in left])[0]
            left[name] -= min(self.chosen.randint(1, self.chunk), left[name])
            self._show(name, total[name] - left[name])
            yield
            if cuts and self.chosen.random() < 0.05:
                at = self._show(name, total[name] - left[name])
                kept = at.read_bytes()
                at.write_bytes(kept[: self.chosen.randint(0, len(kept))])
                yield
                at.write_bytes(kept)
                yield

    def _show(self, name: str, size: int) -> Path:
        """Let a log have so many bytes, and return its last file."""
        last = self.contents[name][0][0]
        for file, data in self.contents[name]:
            there = file.stat().st_size if file.exists() else 0
            if size <= 0 and there == 0:
                break
            if there < min(size, len(data)):
                with file.open("ab") as out:
                    out.write(data[there:size])
            size, last = size - len(data), file
        return last

    def batch(self, out: Path, engine: str = "reference") -> list[bytes]:
        """Return the records of one run over all that there is."""
        conflict.resolve(self.run_file, out=out, engine=engine, policy="needs")
        return [line for batch in conflict.records(out) for line in json_lines(batch).splitlines(keepends=True)]
