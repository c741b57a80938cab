"""
What the small installation needs, from `pyproject.toml`: the dependencies without those that an extra brings, too.

    python -m tools.core_requirements

Writes conflict/requirements-core.txt, which the wheel has as well.
"""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
REQUIREMENTS = ROOT / "conflict" / "requirements-core.txt"


def core_requirements() -> str:
    """Return the text of `REQUIREMENTS`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extra = {each for requirements in project["optional-dependencies"].values() for each in requirements}
    core = [each for each in project["dependencies"] if each not in extra]
    return "\n".join(["# The small installation of ndb-conflict: docs/install.md says how it is used.", *core, ""])


if __name__ == "__main__":
    REQUIREMENTS.write_text(core_requirements(), "utf-8")
