"""
The pages of the API reference: which public names stand on which page. Their texts are the docstrings.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["API_PAGES", "ApiPage"]


@dataclass(frozen=True)
class ApiPage:
    """
    A page of the API reference.

    Attributes:
        title: Its title.
        about: What it is for, as Markdown.
        names: The public names on it: modules and what is in them.
    """

    title: str
    about: str
    names: tuple[str, ...]

    @property
    def markdown(self) -> str:
        """The page as mkdocstrings reads it."""
        return "\n\n".join((f"# {self.title}", self.about, *(f"::: {name}" for name in self.names))) + "\n"


def _of_conflict(*names: str) -> tuple[str, ...]:
    return tuple(f"conflict.{name}" for name in names)


def _of_formats(module: str, *names: str) -> tuple[str, ...]:
    return tuple(f"ndb_formats.{module}.{name}" for name in names)


API_PAGES = {
    "api/runs.md": ApiPage(
        "Runs",
        "From binlogs to a [run file](../run-file.md), and from it to a [result](../result.md).",
        _of_conflict(
            *("init", "DraftedRun", "load_run_file", "RunFile", "resolve", "ingest", "spark_session", "register")
        ),
    ),
    "api/results.md": ApiPage(
        "Results",
        "What a [result](../result.md) holds, and what can be made from it.",
        _of_conflict(
            *("read_result", "Result", "conflicts", "explain", "explain_differences", "Story"),
            *("lost", "records", "metrics", "repair", "watch", "window", "audit", "channel", "report"),
        ),
    ),
    "api/checks.md": ApiPage(
        "Checks",
        "What servers will do with a configuration, table or statement. [Findings](../findings.md) lists all codes.",
        _of_conflict(
            *("check", "Report", "requirements", "Requirements", "check_replica", "ReplicaReport"),
            *("logging", "LoggedStatements", "conformance", "Conformance"),
        ),
    ),
    "api/what-if.md": ApiPage(
        "What would be",
        "The same changes under other functions, [models](../model.md) of clusters, and searches for schedules.",
        _of_conflict(
            *("compare", "Comparison", "simulate", "Simulation", "Estimate", "workers", "workload", "sweep", "Sweep"),
            *("diverge", "Divergence", "zoo", "Zoo"),
        ),
    ),
    "api/binlogs.md": ApiPage(
        "Binlogs",
        "The row changes of binlogs. [Python](../python.md#binlogs) has examples.",
        _of_conflict("read_binlog", "BinlogTable", "decode", "sizes", "rewrite", "Rewritten"),
    ),
    "api/histories.md": ApiPage(
        "Histories and resolvers",
        "[Schedules](../histories.md) that are typed in, and [conflict functions](../resolvers.md) of one's own.",
        _of_conflict(
            *("History", "Verdicts", "resolver", "Resolver", "FoundRow", "IncomingChange", "Decision"),
            *("APPLY", "IGNORE", "merge", "reject"),
        ),
    ),
    "api/errors.md": ApiPage(
        "Errors",
        "What the functions raise, and the warnings that they give.",
        (
            *_of_conflict("ConflictError", "ConfigurationError", "HistoryError", "NotBuiltError", "errors.LogWarning"),
            *_of_formats("errors", "FormatError", "TruncatedError", "CorruptError", "UnsupportedError", "SchemaError"),
        ),
    ),
    "api/formats.md": ApiPage(
        "Formats",
        "The package `ndb_formats` decodes and writes [binlogs](../formats.md) without pyspark.",
        (
            *_of_formats("row_reader", "read_rows", "LoggedRow"),
            *_of_formats("columnar.batches", "read_batches", "RowBatch"),
            *_of_formats("schema.create_table", "parse_create_table", "parse_schema"),
            *_of_formats("schema.tables", "Schema", "Table", "Column"),
            *_of_formats("events.rows_event", "Operation"),
            *_of_formats("events.row_image", "RowImage", "layout_of", "put_image"),
            *_of_formats("events.table_map_of_table", "table_map_of", "RowMetadata"),
            *_of_formats("rules.formats", "FORMATS", "Format"),
            *_of_formats("rules.images", "images", "Logging"),
            *_of_formats("rules.row_image_rules", "RowImageRule", "primary_key_equivalent"),
            *_of_formats("rules.update_format", "effective_format"),
            *_of_formats("writing.binlog_writer", "BinlogWriter", "BinlogSettings", "WrittenChange"),
            *_of_formats("types.column_types", "Codec"),
            *_of_formats("cursor", "Cursor"),
        ),
    ),
}
