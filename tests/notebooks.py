"""
Notebooks without Jupyter: the code cells run in order as plain Python.

    python -m tests.notebooks docs/walkthrough.ipynb

runs them and keeps what they give in the file. A test runs them too and compares.
"""

import ast
import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# How objects say what a notebook shows of them.
_SHOWN_AS = {"_repr_html_": "text/html", "_repr_svg_": "image/svg+xml"}


def outputs_of(notebook: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Run the code cells; yield the outputs of each as the file has them."""
    names: dict[str, Any] = {}
    number = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        number += 1
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(ast.Module(body, []), f"cell {number}", "exec"), names)
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names) if last else None
        outputs = []
        if printed.getvalue():
            outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
        if value is not None:
            shown = {"text/plain": _lines(repr(value))}
            for name, kind in _SHOWN_AS.items():
                text = getattr(value, name, lambda: None)()
                if text is not None:
                    shown[kind] = _lines(text)
            outputs.append({"data": shown, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
        yield outputs


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def keep_outputs(path: Path) -> None:
    """Run a notebook in its folder, as Jupyter does, and write its outputs into it."""
    notebook = json.loads(path.read_text("utf-8"))
    with contextlib.chdir(path.parent):
        found = list(outputs_of(notebook))
    codes = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, outputs) in enumerate(zip(codes, found, strict=True), start=1):
        cell["outputs"], cell["execution_count"] = outputs, number
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    keep_outputs(Path(sys.argv[1]))
