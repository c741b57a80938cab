"""
Print the requirements of the project, each with the lowest version that `pyproject.toml` allows.

    python tools/lowest_versions.py | xargs pip install
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lowest(requirements: Sequence[str]) -> Iterator[str]:
    """Yield requirements with ``==`` for ``>=``, and without upper bounds."""
    for requirement in requirements:
        name, version = re.match(r"([\w\[\].-]+)>=([\d.]+)", requirement).groups()
        yield f"{name}=={version}"


if __name__ == "__main__":
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    print(*lowest([*project["dependencies"], *project["optional-dependencies"]["connect"]]), sep="\n")
