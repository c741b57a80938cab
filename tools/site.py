"""
What `make docs` does to the pages before mkdocs builds the site.

README.md is the first page. Notebooks become pages, and the API reference is made from docstrings. Headings have the
anchors that GitHub gives them, which the links name.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tools.api_pages import API_PAGES  # noqa: E402  # found by the line above

BESIDE = {  # the folder docs
    "README.md": "index.md",
    **{name: name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")},
}
ASSETS = ROOT / "tools" / "site_files"
_FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_CODE = re.compile(r"(?<=<code>)[^<]*")
_LOADED = re.compile(r"""<(?:link|script|img|iframe)\b[^>]*(?:href|src)=["']?(?:https?:)?//[^>]*""")


def on_config(config: Any) -> Any:
    """Give headings the anchors that GitHub gives them."""
    config.mdx_configs["toc"]["slugify"] = _anchor
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that stand beside the folder of the others, the API reference, and notebooks as pages."""
    made: dict[str, str | bytes] = {name: page.markdown for name, page in API_PAGES.items()}
    made |= {f"assets/{path.name}": path.read_bytes() for path in ASSETS.iterdir()}
    for source, name in BESIDE.items():
        made[name] = (ROOT / source).read_text("utf-8").replace("](docs/", "](")
    for file in [each for each in files if each.src_uri.endswith(".ipynb")]:
        files.remove(file)
        made |= _pages_of_notebook(Path(file.src_uri).stem, json.loads(file.content_string))
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Return a page with the links of the site, and with the blanks that this Markdown asks for."""
    page.meta["search"] = {"boost": _weight(page.file.src_uri)}
    for source, name in BESIDE.items():
        markdown = markdown.replace(f"](../{source}", f"]({name}").replace(f"]({source}", f"]({name}")
    markdown = re.sub(r"\]\(([\w-]+)\.ipynb", r"](\1.md", markdown)
    parts = _FENCED.split(markdown)
    return "".join(part if part.startswith("```") else _spaced(part) for part in parts)


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Return a page; in the API reference, names of functions and of pages in docstrings lead to them."""
    if page.file.src_uri not in API_PAGES:
        return html
    html = re.sub(r"\bdocs/([\w-]+)\.md\b", r'<a href="../\1.html">\1</a>', html)
    members = set(re.findall(r'id="conflict\.\w+\.(\w+)"', html))  # where there is one, it is meant
    return re.sub(r"(?<!<b>)<code>(\w+)</code>", lambda code: code[0] if code[1] in members else _linked(code), html)


def on_post_page(output: str, **_: Any) -> str:
    """Return a page in whose tables long names can be broken where their parts meet."""
    return _TABLE.sub(lambda table: _CODE.sub(_breakable, table[0]), output)


def on_post_build(config: Any, **_: Any) -> None:
    """Refuse a site that loads anything from another server when it is read."""
    for path in Path(config.site_dir).rglob("*.html"):
        found = _LOADED.search(path.read_text("utf-8"))
        if found:
            message = f"{path.name} loads something from another server: {found.group()}"
            raise PluginError(message)


def _pages_of_notebook(stem: str, notebook: dict[str, Any]) -> dict[str, str]:
    """Return a notebook as a page in Markdown, and its pictures, by name."""
    parts, pictures = [], {}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            kind, text = _shown(output)
            if kind == "image/svg+xml":
                name = f"pictures/{stem}-{len(pictures) + 1}.svg"
                pictures[name] = text
                text = f"![What {source.splitlines()[-1]} draws]({name})"
            parts.append(text)
    return {f"{stem}.md": "\n\n".join(parts) + "\n", **pictures}


def _shown(output: dict[str, Any]) -> tuple[str, str]:
    """Return what a notebook shows of an output: its kind, and its text, as Markdown if it is no picture."""
    data = output.get("data", {"text/plain": output.get("text")})
    kind = next(each for each in ("image/svg+xml", "text/html", "text/plain") if each in data)
    text = "".join(data[kind])
    if kind == "text/html":
        text = text.replace(' class="number"', ' style="text-align: right"')
        return kind, re.sub(r' class="[^"]*"', "", text)
    return kind, text if kind == "image/svg+xml" else f"```text\n{text.rstrip()}\n```"


def _breakable(code: re.Match[str]) -> str:
    return re.sub(r"(?<=\w{2}[_./=,(])(?=[\w\"'])", "<wbr>", code[0])


def _linked(code: re.Match[str]) -> str:
    """Return a name with the link to where the API reference has it, if it does."""
    name = f"conflict.{code[1]}"
    page = next((page for page, of_page in API_PAGES.items() if name in of_page.names), None)
    return code[0] if page is None else f'<a href="{Path(page).stem}.html#{name}">{code[0]}</a>'


def _weight(name: str) -> float:
    """Return how far ahead of others a search finds a page: terms are explained first, signatures listed last."""
    return 4 if name == "glossary.md" else 0.2 if name in API_PAGES else 1


def _spaced(text: str) -> str:
    text = re.sub(r"^<!-- .* -->\n", "", text, flags=re.MULTILINE)  # a table below one would be text
    return re.sub(r"^   (?=\S)", "    ", text, flags=re.MULTILINE)  # items of a list in a list


def _anchor(heading: str, _: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
