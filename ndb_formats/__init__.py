"""
The formats of row changes: MySQL binlogs, row images, and the binlog types of NDB.

It decodes bytes and encodes values, without pyspark; only `binlog_reader` opens files. Start with `row_reader` (row
changes one by one) or `columnar.batches` (as Arrow record batches).
"""

from pathlib import Path

from ndb_formats.compiled_cache import provide_cache

provide_cache(Path(__file__).parent)
