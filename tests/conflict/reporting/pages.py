"""Reads pages of reports as a browser would."""

import re
from html.parser import HTMLParser

FROM_ELSEWHERE = {"src", "href", "xlink:href", "action", "data", "poster", "srcset", "background", "formaction"}


class Page(HTMLParser):
    """The elements of a page, its text, and what it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.texts: list[str] = []
        self.loaded: list[str] = []
        self.handlers: list[str] = []
        self._style = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self._style = tag == "style"
        for name, value in attrs:
            if name in FROM_ELSEWHERE:
                self.loaded.append(value or "")
            elif name.startswith("on"):
                self.handlers.append(name)
            self._style_of(value or "")

    def handle_data(self, data: str) -> None:
        if self._style:
            self._style_of(data)
            self.loaded += re.findall("@import.*", data)
        else:
            self.texts.append(data)

    def _style_of(self, text: str) -> None:
        self.loaded += [found.strip("\"' ") for found in re.findall(r"url\(([^)]*)\)", text)]

    @property
    def text(self) -> str:
        """What a reader sees, with single blanks."""
        return " ".join(" ".join(self.texts).split())

    @property
    def outside(self) -> list[str]:
        """What it would load that is not part of itself."""
        return [each for each in self.loaded if not each.startswith("#")]
