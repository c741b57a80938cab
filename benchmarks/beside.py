"""
Results of this machine beside those that are published, figure by figure.

    python -m benchmarks.beside build/bench

Speeds of two machines differ; the ratio of one figure says little, and those of all figures beside each other say
where one of them is out of line.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.documents import Figure, figures, unfit
from benchmarks.page import RESULTS

_MACHINE = ("commit", "date", "processor", "cores", "memory_gib", "busy_cores_at_start", "python")


def beside(name: str, here: dict[str, Any], published: dict[str, Any] | None) -> Table:
    """Return the table of one benchmark: processor seconds published and here, and how many times as long here."""
    known = {each.name: each for each in figures((published or {}).get("results", {}))}
    table = Table(title=name, caption=_caption(here, published), title_justify="left", caption_justify="left")
    for heading in ("work", "published, s", "here, s", "here / published", "noise here"):
        table.add_column(heading, justify="left" if heading == "work" else "right")
    for each in figures(here.get("results", {})):
        table.add_row(each.name, *_cells(each, known.get(each.name)))
    return table


def _cells(here: Figure, published: Figure | None) -> tuple[str, str, str, str]:
    noise = f"{here.noise:.0%}"
    if published is None or not published.seconds:
        return "", f"{here.seconds:.2f}", "", noise
    return f"{published.seconds:.2f}", f"{here.seconds:.2f}", f"{here.seconds / published.seconds:.2f}", noise


def _caption(here: dict[str, Any], published: dict[str, Any] | None) -> str:
    lines = []
    for title, document in (("published", published), ("here", here)):
        machine = (document or {}).get("environment", {})
        facts = [f"{key.replace('_', ' ')} {machine[key]}" for key in _MACHINE if key in machine]
        facts += [f"{peer}: {version}" for peer, version in machine.get("peers", {}).items()]
        lines.append(f"{title}: {', '.join(facts) or 'nothing'}")
    lines += [f"cannot be published: {why}" for why in unfit(here)]
    return "\n".join(lines)


def main() -> None:
    """Print a table for each result in a folder."""
    console = Console()
    for path in sorted(Path(sys.argv[1]).glob("*.json")):
        kept = RESULTS / path.name
        published = json.loads(kept.read_text("utf-8")) if kept.exists() else None
        console.print(beside(path.stem, json.loads(path.read_text("utf-8")), published))


if __name__ == "__main__":
    main()
