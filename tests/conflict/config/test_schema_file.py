"""Files of definitions."""

from pathlib import Path

import pytest

from conflict.config.schema_file import load_schema
from conflict.errors import ConfigurationError


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-- a dump of nothing\n",
        '<?xml version="1.0"?>\n<mysqldump><database name="d"/></mysqldump>\n',
        "<html><body>Not found</body></html>\n",
        "CREATE PROCEDURE p() CREATE TABLE t (a INT);\n",
        "CREATE TABLE t (a INT); DROP TABLE t;\n",
    ],
)
def test_a_file_that_defines_no_table_is_refused(text: str, tmp_path: Path):
    """Else everything would go on as if no file had been given."""
    file = tmp_path / "schema.sql"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=r"schema\.sql: no CREATE TABLE statement; give what"):
        load_schema(file)
