"""
SVG that screen readers read: every picture has a title and a description.
"""

from __future__ import annotations

import hashlib
import re
from xml.etree import ElementTree as ET  # only of SVG that was written here

from conflict.telling.palette import VARIABLES
from conflict.telling.shown_text import one_line

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_COLOUR = re.compile("#[0-9a-f]{6}")
_REFERENCE = re.compile(r"#([\w.-]+)")
_DECLARATION = '<?xml version="1.0" encoding="utf-8"?>\n'


def accessible_svg(svg: str | bytes, title: str, description: str, *, in_page: bool = False) -> str:
    """
    Return a picture with a title and a description.

    Args:
        svg: The picture, as it was drawn.
        title: What it shows.
        description: The same in words, for who does not see it.
        in_page: Make it as wide as its column, in the colours of the page's theme.
    """
    for prefix, space in (("", _SVG), ("xlink", _XLINK)):
        ET.register_namespace(prefix, space)
    root = ET.fromstring(svg)  # noqa: S314  # written here
    for name in ("metadata", "title", "desc"):
        for each in root.findall(f"{{{_SVG}}}{name}"):
            root.remove(each)
    if in_page:
        _fit(root)
    number = hashlib.sha256(ET.tostring(root)).hexdigest()[:8]  # pages hold several pictures
    names = {"title": f"title-{number}", "desc": f"desc-{number}"}
    for place, (name, text) in enumerate(zip(names, (title, description), strict=True)):
        each = ET.Element(f"{{{_SVG}}}{name}", id=names[name])
        each.text = one_line(text)
        root.insert(place, each)
    root.attrib.update({"role": "img", "aria-labelledby": " ".join(names.values())})
    return ET.tostring(root, "unicode")


def svg_file(svg: bytes, title: str, description: str) -> bytes:
    """Return what a file holds of a picture; see `accessible_svg`."""
    return (_DECLARATION + accessible_svg(svg, title, description) + "\n").encode()


def _fit(root: ET.Element) -> None:
    """Let a picture take the width of its column and the colours of its page; drop names that nothing refers to."""
    used = {name for each in root.iter() for value in each.attrib.values() for name in _REFERENCE.findall(value)}
    for each in root.iter():
        if each.get("id") not in used:
            each.attrib.pop("id", None)
        for name in ("style", "fill", "stroke"):
            if name in each.attrib:
                each.set(name, _COLOUR.sub(_themed, each.attrib[name]))
    root.attrib.pop("height", None)
    root.set("width", "100%")


def _themed(found: re.Match[str]) -> str:
    name = VARIABLES.get(found[0])
    return f"var({name})" if name else found[0]
