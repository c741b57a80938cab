"""
`ndb-conflict report`: results as one HTML page to hand on.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

import conflict.api.results
from conflict.cli.common import console
from conflict.cli.from_functions import Call, command_of

if TYPE_CHECKING:
    from conflict.telling.part import Part


@command_of(conflict.api.results.report)
def report(call: Call[tuple[Path, list[Part]]]) -> None:
    """
    Write results as one HTML page: the question, the answer, figures, tables. It needs no network.

    Example: ndb-conflict report build/demo/result build/compare --out report.html
    """
    from conflict.reporting.report import figure_count
    from conflict.telling.shown_text import counted

    out, parts = call()
    what = f"{counted(len(parts), 'result')}, {counted(figure_count(parts), 'figure')}"
    size = f"{out.stat().st_size / 1000:,.0f} kB"
    console.print(f"The report is in {escape(str(out))}: {what}, {size}.", highlight=False, soft_wrap=True)
