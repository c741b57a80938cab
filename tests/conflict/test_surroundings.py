"""What a system can lack, and commands do without."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conflict.config.servers.addresses import ServerAddress
from conflict.config.servers.connection import connected
from conflict.errors import ConfigurationError
from tests.corpora import DEMO

# Python without OpenSSL, as somebody builds it who lacks its headers.
WITHOUT_SSL = """
import sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name in ("ssl", "_ssl"):
            raise ImportError(name)

sys.meta_path.insert(0, Without())
"""


def run(code: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, with variables of its own."""
    environment = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def commands(*lines: str) -> str:
    """Return Python that runs commands, and ends with the code of the first one that fails."""
    return "from conflict.cli.app import app\n" + "".join(
        f"try:\n    app({line.split()!r})\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        for line in lines
    )


def test_no_ssl(tmp_path: Path) -> None:
    """All that is local works, and who asks for ssl is told that it is not there."""
    local = (
        f"resolve {DEMO}/run.toml",
        "conflicts result",
        "explain result --differences",
        f"decode {DEMO}/A.binlog.000001 --format parquet -r tables",
        f"compare {DEMO}/run.toml --functions OVERWRITE",
    )
    ending = "try:\n    import ssl\nexcept ImportError:\n    print('no ssl')\n"
    done = run(WITHOUT_SSL + commands(*local) + ending, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "no ssl"


def test_no_ssl_for_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is to be asked with TLS is refused in a sentence, before it is asked."""
    monkeypatch.setitem(sys.modules, "ssl", None)
    monkeypatch.setenv("MYSQL_PWD", "none")
    address = ServerAddress(None, "root", "127.0.0.1", 1, tls="REQUIRED")
    with pytest.raises(ConfigurationError, match="this Python has no ssl, and so no TLS"), connected(address):
        pass


def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    """A page with charts says nothing of that; the list of fonts is kept in a folder of this user alone."""
    assert run(commands(f"resolve {DEMO}/run.toml"), tmp_path).returncode == 0
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    nowhere = {"HOME": f"{DEMO}/run.toml/home", "XDG_CONFIG_HOME": "", "XDG_CACHE_HOME": "", "MPLCONFIGDIR": ""}
    done = run(commands("report result"), tmp_path, TMPDIR=str(temporary), **nowhere)
    assert (done.returncode, done.stderr) == (0, "")
    (kept,) = temporary.glob("ndb-conflict-matplotlib-*")
    assert (kept.stat().st_mode & 0o077, len([*kept.glob("fontlist*")])) == (0, 1)
