"""Colours of pictures and pages: contrast after WCAG 2.2, in both themes."""

import pytest

from conflict.telling.palette import DARK, GROUNDS, LIGHT, MARKS, TEXTS, VARIABLES


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour such as ``#ffffff``, as WCAG 2.2 defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    darker, lighter = sorted(map(luminance, (one, other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize(
    ("one", "other", "ratio"),
    [
        ("#000000", "#ffffff", 21.0),  # 1.05 / 0.05
        ("#ffffff", "#ffffff", 1.0),
        ("#ff0000", "#ffffff", 1.05 / 0.2626),  # 0.2126 + 0.05
        ("#00ff00", "#000000", 0.7652 / 0.05),  # 0.7152 + 0.05
        ("#0a0a0a", "#000000", 0.0530353 / 0.05),  # 10 / 255 / 12.92 = 0.0030353, the linear part of the curve
        ("#808080", "#000000", 0.2658605 / 0.05),  # ((128 / 255 + 0.055) / 1.055) ** 2.4 = 0.2158605
    ],
)
def test_the_formula(one: str, other: str, ratio: float) -> None:
    """Examples worked by hand."""
    assert contrast(one, other) == pytest.approx(ratio, abs=1e-4)
    assert contrast(other, one) == contrast(one, other)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast(theme: dict[str, str]) -> None:
    """Text is at least 4.5:1 on everything that it stands on, and what is drawn 3:1 on paper."""
    text = {(name, on): contrast(theme[name], theme[on]) for name in TEXTS for on in GROUNDS}
    assert {pair: ratio for pair, ratio in text.items() if ratio < 4.5} == {}
    marks = {name: contrast(theme[name], theme["paper"]) for name in MARKS}
    assert {name: ratio for name, ratio in marks.items() if ratio < 3} == {}


def test_both_themes_have_the_same_colours() -> None:
    """Each has a name of its own, by which a page finds the other theme's."""
    assert LIGHT.keys() == DARK.keys()
    assert len(VARIABLES) == len(LIGHT)
