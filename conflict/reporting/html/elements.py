"""
Elements of HTML. Every text goes through `escaped`, so that no name from data becomes markup.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

import attrs

from conflict.shown_text import printable

__all__ = ["Html", "element", "escaped", "joined"]


@attrs.frozen
class Html:
    """Markup that is safe to put into a page."""

    text: str


def escaped(text: object) -> str:
    """Return a text as it stands in a page, in an element or in quotation marks."""
    return html.escape(printable(str(text)))


def element(name: str, *content: Html | object, **attributes: str) -> Html:
    """
    Return an element.

    Args:
        name: Its name.
        content: What stands in it: markup, or anything else as escaped text.
        attributes: Its attributes; an underscore at the end of a name is left out, others become hyphens.
    """
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{escaped(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{given}>{joined(content).text}</{name}>")


def joined(content: Iterable[Html | object]) -> Html:
    """Return markup and texts one after the other."""
    return Html("".join(each.text if isinstance(each, Html) else escaped(each) for each in content))
