"""
The colours of all pictures and pages, in a light and a dark theme.

Text has a contrast of at least 4.5:1 with what it stands on, and lines and marks of at least 3:1 with the paper (WCAG
2.2). `faint` is decoration: grid lines, and rules between the rows of a table. No colour says anything alone: beside it
stand a shape, a hatch, a dash or a word.
"""

from __future__ import annotations

# By its name in the style sheet of a page.
LIGHT = {
    "ink": "#24292f",
    "quiet": "#59636e",
    "line": "#7f8893",
    "faint": "#d0d7de",
    "paper": "#ffffff",
    "back": "#f3f5f7",
    "mark": "#fff3cf",
    "good": "#1a7444",
    "doubtful": "#855a00",
    "bad": "#b3361f",
    "cluster-0": "#0b66b3",
    "cluster-1": "#b85c00",
    "series-0": "#0f7b6c",
    "series-1": "#c0457a",
    "series-2": "#6f4bbd",
    "series-3": "#8a6d08",
    "series-4": "#6b7580",
    "series-5": "#3d444c",
}
DARK = {
    "ink": "#e6edf3",
    "quiet": "#9aa4ae",
    "line": "#7d8691",
    "faint": "#3d444d",
    "paper": "#161b22",
    "back": "#0d1117",
    "mark": "#3a3216",
    "good": "#56d68f",
    "doubtful": "#f0b040",
    "bad": "#ff8d75",
    "cluster-0": "#58a6ff",
    "cluster-1": "#f0944d",
    "series-0": "#3fc4b0",
    "series-1": "#f47fb0",
    "series-2": "#b39dff",
    "series-3": "#d9b93f",
    "series-4": "#8f99a4",
    "series-5": "#c9d1d9",
}
TEXTS = ("ink", "quiet", "good", "doubtful", "bad")
GROUNDS = ("paper", "back", "mark")
MARKS = tuple(name for name in LIGHT if name not in (*GROUNDS, "faint"))

INK, QUIET, LINE, FAINT, PAPER = (LIGHT[name] for name in ("ink", "quiet", "line", "faint", "paper"))
GOOD, DOUBTFUL, BAD = (LIGHT[name] for name in ("good", "doubtful", "bad"))
CLUSTERS = (LIGHT["cluster-0"], LIGHT["cluster-1"])  # the first cluster of a run, and the second one
SERIES = tuple(LIGHT[f"series-{number}"] for number in range(6))  # of what is no cluster
REFRESHED = SERIES[2]
# What each colour is called in the style sheet of a page.
VARIABLES = {colour: f"--{name}" for name, colour in LIGHT.items()}
