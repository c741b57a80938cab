"""
Settled epochs as lines of the record: the columns and the texts of `conflict.operating.records`.

Each lot of epochs becomes a small result in memory, from which the records are read as from any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.engine.ledger.layout import ResultOptions
from conflict.engine.ledger.open_places import OpenSchedule
from conflict.engine.ledger.resolution import ClusterResult, Outcome, Resolution
from conflict.engine.ledger.resolution_ledger import KeyTexts, ReferenceLedger, write_open, write_resolution
from conflict.errors import HistoryError
from conflict.history.grid.folder import Folder
from conflict.history.model import History
from conflict.history.run import Run
from conflict.operating.records.facts import read_facts, with_keys
from conflict.operating.records.layout import RECORD, json_lines
from conflict.operating.records.reading import logged_images, with_logged
from conflict.operating.watching.tail import Extent
from conflict.operating.watching.unsettled import SettledEpoch
from conflict.results.conflicts import ALL
from conflict.results.result import Result
from conflict.results.run_document import configuration_json
from ndb_formats.columnar.batches import read_batches

# By cluster and own epoch, where it stands.
Extents = Mapping[tuple[str, int], Extent]


@attrs.frozen
class RecordWriter:
    """
    Makes lines of settled epochs.

    Attributes:
        run: The run.
        scratch: A folder for the small results.
    """

    run: Run
    scratch: Folder

    def lines(self, epochs: Sequence[SettledEpoch], history: History, extents: Extents) -> list[bytes]:
        """
        Return the records of settled epochs, a line each.

        Args:
            epochs: The epochs.
            history: Any part of the History, for its clusters and layouts.
            extents: Where the epochs stand in the logs.
        """
        if not epochs:
            return []
        self.scratch.delete()  # what a kill left
        self._write(epochs, history)
        result = Result(self.scratch, self._document(), {})
        facts = read_facts(result, ALL)
        self.scratch.delete()
        wanted = pa.array([f"{each.source} {each.number}" for each in epochs])
        places = pc.binary_join_element_wise(facts["source"], facts["source_epoch"].cast(pa.string()), " ")
        facts = facts.filter(pc.is_in(places, value_set=wanted))
        found = list[bytes]()
        for part in self._with_images(facts, extents):
            records = with_keys(part, result).select(RECORD.names).cast(RECORD).combine_chunks()
            for batch in records.to_batches():
                found += json_lines(batch).splitlines(keepends=True)
        return found

    def _write(self, epochs: Sequence[SettledEpoch], history: History) -> None:
        """Write the small result."""
        setups = self.run.setups.at_end
        results = {cluster.name: ClusterResult() for cluster in history.clusters}
        for each in epochs:
            results[each.source].overwritten += each.overwritten
            for decision in each.undecided:
                results[decision.applier].undecided.append(decision)
        resolution = Resolution(results, _once(epochs))
        write_resolution(
            self.scratch, ReferenceLedger(history, setups, resolution, options=ResultOptions(all_outcomes=False))
        )
        keys = KeyTexts(history.layouts, {table.full_name: table for table in self.run.schema.tables})
        schedule = OpenSchedule(places=tuple(place for each in epochs for place in each.open_places))
        write_open(self.scratch, schedule, [opened for each in epochs for opened in each.open_epochs], keys)

    def _document(self) -> dict[str, Any]:
        return {"configuration": configuration_json(self.run)}

    def _with_images(self, facts: pa.Table, extents: Extents) -> Iterator[pa.Table]:
        """Yield facts with the images that the logs hold, file by file; those without a file are the last."""
        for cluster in self.run.clusters:
            mine = facts.filter(pc.equal(facts["source"], cluster.name))
            files = mine["file"].unique().to_pylist()
            for file in files:
                here = mine.filter(pc.equal(mine["file"], file) if file is not None else mine["file"].is_null())
                yield from with_logged(here, () if file is None else [self._logged(cluster.name, file, here, extents)])

    def _logged(self, name: str, file: str, facts: pa.Table, extents: Extents) -> pa.Table:
        """Return the images of the changes of a file."""
        cluster = next(each for each in self.run.clusters if each.name == name)
        schema = self.run.configuration.with_database_names({}).schema_of(cluster)
        places = {extents[name, epoch] for epoch in facts["source_epoch"].unique().to_pylist()}
        start, stop = min(each.start for each in places), max(each.stop for each in places)
        if not Path(file).exists():
            message = (
                f"{file} was removed before all records of its changes were written; resolve the logs in its place"
            )
            raise HistoryError(message)
        positions = np.unique(facts["position"].to_numpy())
        found = logged_images(read_batches(file, start=start, stop=stop, schema=schema), file, positions)
        if len(np.setdiff1d(positions, found["position"].to_numpy())):
            message = f"{file} was cut while a record of it was written; watch on, once it is whole"
            raise HistoryError(message)
        return found


def _once(epochs: Iterable[SettledEpoch]) -> list[Outcome]:
    """Return all operations that were rejected, each once, the earlier ones first."""
    every = [outcome for each in epochs for outcome in each.earlier]
    every += [outcome for each in epochs for outcome in each.rejected]
    return list({id(each): each for each in every}.values())
