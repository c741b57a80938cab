"""What happens on two clusters, as a picture."""

from xml.etree import ElementTree as ET

from conflict.telling.lanes import Lane, LaneEvent, lanes_svg
from conflict.telling.value import Tone

_SVG = "{http://www.w3.org/2000/svg}"


def test_a_picture_of_two_lanes() -> None:
    """Each event has a mark and its lines; what is bad is a cross at a dashed arrow, and arrows come from causes."""
    shown = lanes_svg(
        [Lane("A", ("at first <1>",), ("at the end",)), Lane("B")],
        [
            LaneEvent(0, 1, ("insert 1",)),
            LaneEvent(
                1,
                2,
                ("apply 1", "a line that is so long that it does not fit beside its lane and is folded"),
                ((0, 1),),
                Tone.GOOD,
            ),
            LaneEvent(0, 3, ("apply 1",), ((1, 2),), Tone.BAD),
        ],
    )
    root = ET.fromstring(shown)  # written above
    texts = [each.text for each in root.iter(f"{_SVG}text")]
    assert {"A", "B", "at first <1>", "at the end", "insert 1", "apply 1"} <= set(texts)
    assert len(list(root.iter(f"{_SVG}circle"))) == 1, "what was applied"
    assert len(list(root.iter(f"{_SVG}rect"))) == 2, "the paper, and what the user does"
    arrows = [each for each in root.iter(f"{_SVG}line") if "marker-end" in each.attrib]
    assert [each.attrib["marker-end"] for each in arrows] == ["url(#lane-good)", "url(#lane-bad)"]
    assert ["stroke-dasharray" in each.attrib for each in arrows] == [False, True]
    assert (root.findtext(f"{_SVG}title"), root.get("role")) == ("What happens on A and B", "img")
    assert root.findtext(f"{_SVG}desc") == (
        "A at first: at first <1>; 1, A: insert 1; 2, B: apply 1, a line that is so long that it does not fit beside "
        "its lane and is folded; 3, A: apply 1; A at the end: at the end"
    )
    assert all(len(text or "") <= 50 for text in texts)


def test_lanes_on_which_nothing_happens() -> None:
    """The lanes are there all the same."""
    root = ET.fromstring(lanes_svg([Lane("A"), Lane("B")], []))  # written above
    assert [each.text for each in root.iter(f"{_SVG}text")] == ["A", "B"]
