"""What happens on two clusters, as a picture."""

from xml.etree import ElementTree as ET

from conflict.telling.lanes import Lane, LaneEvent, lanes_svg
from conflict.telling.value import Tone

_SVG = "{http://www.w3.org/2000/svg}"


def test_a_picture_of_two_lanes() -> None:
    """Each event has a mark and its lines; what is bad is a cross, and arrows come from causes."""
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
    assert len(list(root.iter(f"{_SVG}circle"))) == 2
    arrows = [each for each in root.iter(f"{_SVG}line") if "marker-end" in each.attrib]
    assert [each.attrib["marker-end"] for each in arrows] == ["url(#lane-good)", "url(#lane-bad)"]
    assert all(len(text or "") <= 50 for text in texts)


def test_lanes_on_which_nothing_happens() -> None:
    """The lanes are there all the same."""
    root = ET.fromstring(lanes_svg([Lane("A"), Lane("B")], []))  # written above
    assert [each.text for each in root.iter(f"{_SVG}text")] == ["A", "B"]
