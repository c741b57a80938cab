"""
What `make docs` does to the pages before mkdocs builds the site.

README.md is the first page, and its table of pages the order of the others. Headings have the anchors that GitHub
gives them, which the links name.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
BESIDE = {"README.md": "index.md"} | {f"{name}.md": f"{name}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY")}
_FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_LOADED = re.compile(r"""<(?:link|script|img|iframe)\b[^>]*(?:href|src)=["']?(?:https?:)?//[^>]*""")


def on_config(config: Any) -> Any:
    """Order the pages as the README does."""
    readme = (ROOT / "README.md").read_text("utf-8")
    pages = re.findall(r"\[([\w -]+)\]\((?:docs/)?([\w-]+\.md)\)", readme.split("## Documentation")[1])
    config.nav = [{"start": "index.md"}, *({name: page} for name, page in pages)]
    config.mdx_configs["toc"] = {"slugify": _anchor, "permalink": True}
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that stand beside the folder of the others."""
    for source, name in BESIDE.items():
        text = (ROOT / source).read_text("utf-8").replace("](docs/", "](")
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page with the links of the site, and with the blanks that this Markdown asks for."""
    for source, name in BESIDE.items():
        markdown = markdown.replace(f"](../{source}", f"]({name}").replace(f"]({source}", f"]({name}")
    parts = _FENCED.split(markdown)
    return "".join(part if part.startswith("```") else _spaced(part) for part in parts)


def on_post_build(config: Any, **_: Any) -> None:
    """Refuse a site that loads anything from another server when it is read."""
    for path in Path(config.site_dir).rglob("*.html"):
        found = _LOADED.search(path.read_text("utf-8"))
        if found:
            message = f"{path.name} loads something from another server: {found.group()}"
            raise PluginError(message)


def _spaced(text: str) -> str:
    text = re.sub(r"^<!-- .* -->\n", "", text, flags=re.MULTILINE)  # a table below one would be text
    return re.sub(r"^   (?=\S)", "    ", text, flags=re.MULTILINE)  # items of a list in a list


def _anchor(heading: str, _: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
