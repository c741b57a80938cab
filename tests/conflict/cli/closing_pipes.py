"""
Runs commands that print to a pipe whose reader goes away, each in a child of this process, which imports them once.

Reads from its input a JSON object with, by name, the arguments of each command, how many bytes are read before the pipe
is closed, and whether errors go there as well; prints by name the exit code, and what was said where errors do not.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from conflict.cli.app import COMMANDS, main
from conflict.cli.commands import warm_up
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO


def ended(case: dict[str, Any]) -> tuple[int, str]:
    """Run a command; return its exit code, and what it said."""
    reading, writing = os.pipe()
    if not case["bytes"]:
        os.close(reading)  # before the child can print anything
    with tempfile.TemporaryFile() as errors:
        child = os.fork()
        if not child:
            os.dup2(writing, 1)
            os.dup2(writing if case["errors"] else errors.fileno(), 2)
            if case["bytes"]:
                os.close(reading)
            os.close(writing)
            sys.argv = ["ndb-conflict", *case["arguments"]]
            main()
        os.close(writing)
        if case["bytes"]:
            with open(reading, "rb") as reader:
                reader.read(case["bytes"])
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        errors.seek(0)
        return code, errors.read().decode()


if __name__ == "__main__":
    os.environ["COLUMNS"] = "80"
    for place, _ in COMMANDS.values():
        import_module(place.split(":")[0])
    warm_up._commands = lambda folder: []  # it runs the others
    with tempfile.TemporaryDirectory() as folder:  # what it imports and loads to work on a log
        invoke("resolve", DEMO / "run.toml", "--engine", "local", "--out", f"{folder}/result")
        invoke("decode", DEMO / "A.binlog.000001", "-vv")
    gc.freeze()  # a child ends much faster when it need not look at all that was imported
    cases = json.load(sys.stdin)
    Path(sys.argv[1]).write_text(json.dumps({name: ended(case) for name, case in cases.items()}), "utf-8")
