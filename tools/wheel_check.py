"""
Build the wheel, install it into an environment of its own, and run it there, without a checkout.

    python tools/wheel_check.py build/wheel

The environment is the small installation (docs/install.md): it is there in less than a minute, and what works in it
works in the whole one. Times of imports are printed, and judged by nobody.
"""

import re
import subprocess
import sys
import venv
from pathlib import Path
from shutil import rmtree
from time import perf_counter
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]
PACKAGES = ("conflict", "ndb_formats")
TRIES = 3
MOST_MEGABYTES = 600  # with pip


def run(*command: str | Path, folder: Path) -> str:
    """Return what a command prints; end if it fails, with all that it printed."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def hold(condition: object, what: str) -> None:
    """End with a sentence if something is not so."""
    if not condition:
        sys.exit(what)


def built(folder: Path) -> Path:
    """Return the wheel, with every file of the packages."""
    rmtree(ROOT / "build" / "lib", ignore_errors=True)  # setuptools would add what an older build left there
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder)
    run(*pip, ".", folder=ROOT)
    (wheel,) = folder.glob("*.whl")
    files = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.split("/")[0] in PACKAGES}
    hold(packed == files, f"only in the wheel or only in the checkout: {', '.join(sorted(packed ^ files))}")
    hold({f"{package}/py.typed" for package in PACKAGES} <= files, "a package has no py.typed")
    return wheel


def installed(wheel: Path, folder: Path) -> Path:
    """Return the folder of programs of a new environment with the wheel, as docs/install.md says."""
    venv.create(folder, clear=True, with_pip=True)
    programs = folder / "bin"
    pip = (programs / "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "--no-deps", wheel.absolute(), folder=folder)
    (requirements,) = folder.rglob("conflict/requirements-core.txt")
    run(*pip, "-r", requirements.absolute(), folder=folder)
    megabytes = sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    print(f"The small installation has {megabytes:.0f} MB.")
    hold(megabytes < MOST_MEGABYTES, f"that is more than {MOST_MEGABYTES}")
    return programs


def used(programs: Path, folder: Path) -> None:
    """Run the demo, the help of every command, and what reads bundled data, in an empty folder."""
    program = (programs.absolute() / "ndb-conflict",)
    hold("25 conflicts" in run(*program, "demo", folder=folder), "the demo does not show its 25 conflicts")
    listed = run(*program, "--help", folder=folder).partition("Commands:")[2]
    commands = re.findall(r"^  ([a-z][\w-]*) ", listed, re.MULTILINE)
    hold(len(commands) > 20, f"the help lists {len(commands)} commands")
    for command in commands:
        hold(f" {command} " in run(*program, command, "--help", folder=folder), f"the help of {command} is another one")
    run(*program, "demo", "--cases", "cases", folder=folder)
    hold([*(folder / "cases").rglob("scenario.json")], "demo --cases wrote no cases")
    zoo = run(*program, "zoo", "--function", "NDB$EPOCH()", "--formats", "7", "--transactions", "2", folder=folder)
    hold("on real clusters" in zoo, "the zoo does not know what was carried out on real clusters")
    print(f"The demo, its cases, the zoo and the help of {len(commands)} commands work.")


def timed(programs: Path, folder: Path) -> None:
    """Print how long imports and the help take, the best of some tries."""
    python, program = programs.absolute() / "python", programs.absolute() / "ndb-conflict"
    commands = (
        ("python -c pass", (python, "-c", "pass")),
        ("import conflict", (python, "-c", "import conflict")),
        ("import ndb_formats", (python, "-c", "import ndb_formats")),
        ("ndb-conflict --help", (program, "--help")),
    )
    for name, command in commands:
        best = float("inf")
        for _ in range(TRIES):
            start = perf_counter()
            run(*command, folder=folder)
            best = min(best, perf_counter() - start)
        print(f"{best:6.3f} s  {name}")


if __name__ == "__main__":
    place = Path(sys.argv[1])
    for old in place.glob("*.whl"):
        old.unlink()
    place.mkdir(parents=True, exist_ok=True)
    where = installed(built(place.absolute()), place.absolute() / "environment")
    elsewhere = place.absolute() / "folder"
    rmtree(elsewhere, ignore_errors=True)
    elsewhere.mkdir()
    used(where, elsewhere)
    timed(where, elsewhere)
