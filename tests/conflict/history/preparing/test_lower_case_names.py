"""Under lower_case_table_names, statements and schemas name tables in other letters than the log."""

from pathlib import Path

import attrs
import pytest

from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.reading.readings import read_cluster
from conflict.judge.case import ConflictCase
from ndb_formats.schema.tables import Schema
from tests.conflict.faults import with_files
from tests.corpora import RECORDINGS
from tests.ndb_formats.rewritten import rewritten

CASES = ["epoch2/ddl_add_column_type8", "epoch2/ddl_drop_column_type8", "epoch/ddl_rename_and_back_type8"]


@pytest.mark.parametrize("name", CASES)
def test_tables_are_found_in_other_letters(name: str, tmp_path: Path):
    """The same changes are read as when all names have the letters of the log."""
    configuration = ConflictCase.load(RECORDINGS / "everyday" / name).configuration()
    expected = make_run(configuration)
    tables = tuple(
        attrs.evolve(each, database="Day", name=each.name if "$" in each.name else each.name.upper())
        for each in configuration.schema.tables
    )
    clusters = []
    for cluster in configuration.clusters:
        path = tmp_path / f"{cluster.name}.000001"
        path.write_bytes(
            rewritten(cluster.log.files[0], lambda text: text.replace(" t1", " Day.T1").replace("`t1`", "`T1`"))
        )
        clusters.append(with_files(cluster, path))
    changed = attrs.evolve(configuration, schema=Schema(tables), clusters=tuple(clusters))
    found = make_run(changed)
    assert not found.remarks
    for one, two in zip(expected.clusters, found.clusters, strict=True):
        mine, theirs = (
            [
                len(change.key)
                for epoch in read_cluster(each, run).epochs
                for part in epoch.transactions
                for change in part.changes
            ]
            for each, run in ((one, expected), (two, found))
        )
        assert mine == theirs
        assert mine
