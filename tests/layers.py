"""Which folder may import which: the order of each package's folders, lowest first."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# A folder, or a module beside them, imports from itself and from what stands before it.
LAYERS = {
    "ndb_formats": (
        *("errors", "findings", "constants", "cursor", "compiled_cache", "scratch", "stored"),
        *("types", "schema", "events", "rules", "statement_logging"),
        *(
            "binlog_reader",
            "selection",
            "writing",
            "row_reader",
            "columnar",
            "sizes",
            "text",
            "__init__",
        ),
    ),
    "conflict": (
        "errors",
        "documents",
        "program",
        "extras",
        "surroundings",
        "rules",
        "resolvers",
        "telling",
        "config",
        "history",
        "discovery",
        "checking",
        "engine",
        "decoding",
        "spark",
        "results",
        "runs",
        "judge",
        "explaining",
        "operating",
        "typed",
        "whatif",
        "reporting",
        "api",
        "cli",
        "__init__",
        "__main__",
    ),
}


def modules(package: str) -> list[Path]:
    """Return the modules of a package."""
    return sorted((ROOT / package).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Return the full names of all modules that a file imports, at any depth."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports by a relative name"
            names.add(node.module or "")
    return names


def layer(module: str) -> str:
    """Return the folder, or the module beside the folders, that a module belongs to."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def upward_imports(package: str) -> Iterator[str]:
    """Yield every import from a folder that stands above the importing one."""
    order = LAYERS[package]
    for path in modules(package):
        here = path.relative_to(ROOT / package).parts[0].removesuffix(".py")
        for name in imported(path):
            if name.split(".")[0] == package and order.index(layer(name)) > order.index(here):
                yield f"{path.relative_to(ROOT)} imports {name}"


def both_ways(package: str) -> set[frozenset[str]]:
    """Return the folders of a package that import from each other, but for the package itself; by their paths in it."""
    root = ROOT / package
    arrows: set[tuple[str, str]] = set()
    for path in modules(package):
        here = path.parent.relative_to(root).as_posix()
        for name in imported(path):
            if name.startswith(f"{package}."):
                place = ROOT / name.replace(".", "/")
                there = (place if place.is_dir() else place.parent).relative_to(root).as_posix()
                arrows.add((here, there))
    return {frozenset(pair) for pair in arrows if pair[0] != pair[1] and pair[::-1] in arrows and "." not in pair}


def circles(package: str) -> set[frozenset[str]]:
    """Return the modules of a package that import each other, directly or through others, circle by circle."""
    named = {".".join(path.relative_to(ROOT).with_suffix("").parts): imported(path) for path in modules(package)}
    reached = {name: _reached(named, name) for name in named}
    return {
        frozenset(each for each in found if name in reached[each]) for name, found in reached.items() if name in found
    }


def _reached(named: dict[str, set[str]], start: str) -> set[str]:
    """Return the modules that one imports, directly or through others."""
    found, left = set[str](), [start]
    while left:
        new = (named[left.pop()] & named.keys()) - found
        found |= new
        left += new
    return found
