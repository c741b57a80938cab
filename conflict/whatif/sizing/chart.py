"""
A chart of the bytes of a log by format.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from conflict.errors import ConfigurationError
from conflict.surroundings import provide_matplotlib_folder
from conflict.whatif.sizing.document import KINDS
from ndb_formats.rules.formats import FORMATS
from ndb_formats.sizes.report import SizeReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["check_chart_file", "draw_sizes"]

_SUFFIXES = (".png", ".svg")
_COLORS = {"rest": "#b8bcc4", "insert": "#4c78a8", "update": "#f2a541", "delete": "#c8553d"}
_LABELS = {
    "rest": "frame: GTID, BEGIN, table maps, COMMIT",
    "insert": "inserts",
    "update": "updates",
    "delete": "deletes",
}
_UNITS = ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"), (1, "bytes"))


def check_chart_file(path: Path | None) -> None:
    """
    Make sure that a chart can be drawn into a file.

    Raises:
        ConfigurationError: Its name has another ending than those of the formats.
    """
    if path is not None and path.suffix.lower() not in _SUFFIXES:
        message = f"{path}: a chart is a file {' or '.join(f'*{suffix}' for suffix in _SUFFIXES)}"
        raise ConfigurationError(message)


def draw_sizes(report: SizeReport, path: Path) -> None:
    """
    Draw a bar per format, and one for the log as it is; the file appears whole.

    A hatched part is what updates and inserts take more if they set all columns, where the log does not tell.
    """
    provide_matplotlib_folder()
    import matplotlib as mpl  # noqa: PLC0415  # only where a chart is drawn
    from matplotlib.figure import Figure  # noqa: PLC0415  # only where a chart is drawn

    settings: Any = {
        "font.family": "sans-serif",
        "font.size": 10,
        "svg.fonttype": "none",
        "svg.hashsalt": "sizes",
        "hatch.linewidth": 0.6,
    }
    with mpl.rc_context(settings):
        figure = Figure(figsize=(9, 5.2), layout="constrained")
        _draw(figure.add_subplot(), report)
        draft = path.with_name(f".{path.name}.part")
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
        figure.savefig(draft, format=path.suffix[1:].lower(), dpi=160, metadata=metadata)
    draft.replace(path)


def _draw(axes: Axes, report: SizeReport) -> None:
    bars = _bars(report)
    lackings = [False, *(bool(bounds.lacking) for bounds in report.changes.formats)]
    widest = max(sum(parts.values()) + sum(more.values()) for _, parts, more in bars)
    scale, unit = next((scale, unit) for scale, unit in _UNITS if widest >= scale or scale == 1)
    for row, ((_, parts, more), lacking) in enumerate(zip(bars, lackings, strict=True)):
        place = row if row == 0 else row + 0.35
        left = 0.0
        for kind, color in _COLORS.items():
            axes.barh(place, parts[kind] / scale, 0.72, left, color=color, edgecolor="white", linewidth=0.5)
            left += parts[kind] / scale
            if more.get(kind):
                axes.barh(
                    place, more[kind] / scale, 0.72, left, color="white", edgecolor=color, hatch="////", linewidth=0.8
                )
                left += more[kind] / scale
        label = f"{'≥ ' * lacking}{_share(report, parts, more)}"
        axes.text(left + widest / scale * 0.01, place, label, va="center", color="#444444", size=9)
    axes.set_yticks([row if row == 0 else row + 0.35 for row in range(len(bars))], [name for name, _, _ in bars])
    axes.invert_yaxis()
    axes.set_xlim(0, widest / scale * 1.16)
    axes.set_xlabel(unit)
    axes.set_title("Bytes of the log in every format", loc="left", weight="bold", size=12)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#e3e5e8", linewidth=0.8)
    axes.set_axisbelow(True)
    _legend(axes, hatched=any(any(more.values()) for _, _, more in bars), lacking=any(lackings))


def _legend(axes: Axes, *, hatched: bool, lacking: bool) -> None:
    from matplotlib.patches import Patch  # noqa: PLC0415  # only where a chart is drawn

    handles: list[Any] = [Patch(color=color, label=_LABELS[kind]) for kind, color in _COLORS.items()]
    if hatched:
        handles.append(
            Patch(facecolor="white", edgecolor="#555555", hatch="////", label="more, if all columns were set")
        )
    if lacking:
        handles.append(Patch(alpha=0, label="≥ the log lacks values of this format"))
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.45, -0.11), ncols=3, frameon=False, fontsize=9)


def _bars(report: SizeReport) -> list[tuple[str, dict[str, int], dict[str, int]]]:
    """Return name, bytes and what may come to them, by kind, of the log and of each format."""
    kinds = {kind: report.by_kind(number) for number, kind in enumerate(KINDS)}
    frame = {"rest": report.frame.bytes}
    bars = [("as logged", frame | {kind: each.logged.bytes for kind, each in kinds.items()}, dict[str, int]())]
    for number, form in enumerate(FORMATS):
        bounds = {kind: each.formats[number] for kind, each in kinds.items()}
        least = {kind: min(each.least.bytes, each.most.bytes) for kind, each in bounds.items()}
        more = {kind: each.most.bytes - least[kind] for kind, each in bounds.items()}
        name = f"type {form.name}\n{form.title}" if form.of_ndb else f"{form.name}\nbinlog_row_image"
        bars.append((name, frame | least, more))
    return bars


def _share(report: SizeReport, parts: dict[str, int], more: dict[str, int]) -> str:
    least = sum(parts.values())
    low, high = (f"{size / report.total:.0%}" for size in (least, least + sum(more.values())))
    return low if low == high else f"{low} to {high}"
