"""Rows as the mysql client and mysqldump print them, written down from their manuals and from real output."""

from collections.abc import Callable, Mapping, Sequence

Cells = Sequence[Sequence[object]]


def _text(value: object) -> str:
    return "NULL" if value is None else str(value)


def batch(names: Sequence[str], rows: Cells) -> str:
    """As with `mysql --batch`: nothing where there is no row."""
    lines = [names, *([_escaped(_text(value)) for value in row] for row in rows)]
    return "".join("\t".join(line) + "\n" for line in lines) if rows else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


def box(names: Sequence[str], rows: Cells) -> str:
    """As with `mysql --table`: numbers stand on the right."""
    if not rows:
        return "Empty set (0.00 sec)\n\n"
    widths = [max(len(name), *(len(_text(row[place])) for row in rows)) for place, name in enumerate(names)]
    border = "+" + "+".join("-" * (width + 2) for width in widths) + "+\n"
    lines = [_line(names, widths), border, *(_line(row, widths) for row in rows)]
    return f"{border}{''.join(lines)}{border}{len(rows)} row{'s' if len(rows) > 1 else ''} in set (0.00 sec)\n\n"


def _line(cells: Sequence[object], widths: Sequence[int]) -> str:
    padded = (
        _text(cell).rjust(width) if isinstance(cell, int) else _text(cell).ljust(width)
        for cell, width in zip(cells, widths, strict=True)
    )
    return "".join(f"| {cell} " for cell in padded) + "|\n"


def below_each_other(names: Sequence[str], rows: Cells) -> str:
    r"""As with `\G`."""
    if not rows:
        return "Empty set (0.00 sec)\n\n"
    width = max(map(len, names))
    lines = [
        line
        for number, row in enumerate(rows, 1)
        for line in (
            f"{'*' * 27} {number}. row {'*' * 27}\n",
            *(f"{name:>{width}}: {_text(value)}\n" for name, value in zip(names, row, strict=True)),
        )
    ]
    return f"{''.join(lines)}{len(rows)} rows in set (0.00 sec)\n\n"


def dump(table: str, columns: Mapping[str, str], rows: Cells) -> str:
    """As mysqldump --hex-blob writes a table; `columns` are types by name."""
    definitions = ",\n".join(f"  `{name}` {kind}" for name, kind in columns.items())
    values = ",".join(f"({','.join(map(_literal, row))})" for row in rows)
    inserts = f"LOCK TABLES `{table}` WRITE;\nINSERT INTO `{table}` VALUES {values};\nUNLOCK TABLES;\n" if rows else ""
    return (
        f"-- MySQL dump 10.13\n/*!40101 SET NAMES utf8mb4 */;\nDROP TABLE IF EXISTS `{table}`;\n"
        f"CREATE TABLE `{table}` (\n{definitions}\n) ENGINE=ndbcluster;\n{inserts}"
    )


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"0x{value.hex().upper()}" if value else "''"
    escapes = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\0": "\\0"}
    return str(value) if isinstance(value, int) else f"'{''.join(escapes.get(each, each) for each in str(value))}'"


FORMS: dict[str, Callable[[Sequence[str], Cells], str]] = {
    "batch": batch,
    "box": box,
    "below each other": below_each_other,
}
