"""
Which servers are meant: ``CLUSTER=mysql://user@host:port/``, and what option files of the client add to that.

    CLUSTER=        servers with the same name are SQL nodes of one cluster; without it, a server is a cluster
    user@host:port  what is left out is taken from [client] of an option file, else it is as for the mysql client

Option files are those of the mysql client, later ones override earlier ones: /etc/my.cnf, /etc/mysql/my.cnf, ~/.my.cnf;
or one that is given in place of them. Of their group [client], the options of `_OPTIONS` count.

Source: MySQL manual, "Using Option Files", "Connecting to the Server Using URI-Like Strings or Key-Value Pairs",
"Command Options for Encrypted Connections".
"""

from __future__ import annotations

import getpass
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import attrs

from conflict.config.cluster_tables import check_cluster_names
from conflict.config.server_settings import lines_of_groups, option_of_line
from conflict.config.text_file import read_text
from conflict.errors import ConfigurationError
from ndb_formats.errors import did_you_mean

PORT = 3306
_SCHEME = "mysql"
_GIVEN = re.compile(r"(?:(?P<cluster>[^=:/]*)=)?(?P<address>.*)", re.DOTALL)
_FILES = ("/etc/my.cnf", "/etc/mysql/my.cnf", "~/.my.cnf")
_GROUP = re.compile("client", re.IGNORECASE)
_OPTIONS = ("user", "password", "host", "port", "socket", "ssl_mode", "ssl_ca", "ssl_cert", "ssl_key")
TlsMode = str
_TLS_MODES = ("DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")


@attrs.frozen
class ServerAddress:
    """
    A server, and how it is reached.

    Attributes:
        cluster: The name of its cluster; None if none is given.
        user: The account.
        host: The host.
        port: The port.
        socket: The socket file, in place of host and port; None without one.
        password: The password of an option file; None without one.
        tls: One of DISABLED, PREFERRED, REQUIRED, VERIFY_CA and VERIFY_IDENTITY.
        ca: File of the certificate authority; None without one.
        certificate: The client's own certificate; None without one.
        key: Its key; None if it is in the same file.
    """

    cluster: str | None
    user: str
    host: str
    port: int = PORT
    socket: str | None = None
    password: str | None = attrs.field(default=None, repr=False)
    tls: TlsMode = "PREFERRED"
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None

    def __str__(self) -> str:
        """Return the address as it is given, without a password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{_SCHEME}://{self.user}@{self.socket or f'{host}:{self.port}'}"


def addresses_of(given: Sequence[str], defaults_file: Path | None = None) -> list[ServerAddress]:
    """
    Return the servers that are given.

    Args:
        given: Texts such as ``london=mysql://reader@db1:3306/``.
        defaults_file: The option file in place of the client's own ones.

    Raises:
        ConfigurationError: A text is no address, or an option file is wrong.
    """
    options = _client_options(defaults_file)
    return [_address(text, options) for text in given]


def _address(text: str, options: Mapping[str, str]) -> ServerAddress:
    found = _GIVEN.fullmatch(text)
    assert found is not None
    what = f"--server {re.sub(':[^:@/]*@', ':...@', text)}"
    try:
        parts = urlsplit(found["address"])
        scheme, port = parts.scheme, parts.port
    except ValueError as error:
        message = f"{what} is not understood ({error}); give CLUSTER=mysql://USER@HOST:PORT/"
        raise ConfigurationError(message) from error
    if scheme != _SCHEME or parts.path not in ("", "/") or parts.query or parts.fragment:
        message = f"{what} is not understood; give CLUSTER=mysql://USER@HOST:PORT/"
        raise ConfigurationError(message)
    if parts.password is not None:
        message = (
            f"{what} has a password, which everyone sees who lists the processes of this machine; leave it out: it is "
            "asked for, or taken from MYSQL_PWD or from [client] of an option file"
        )
        raise ConfigurationError(message)
    if found["cluster"] is not None:
        check_cluster_names([found["cluster"]])
    mode = options.get("ssl_mode", "PREFERRED").upper()
    if mode not in _TLS_MODES:
        message = f"ssl-mode is {mode}{did_you_mean(mode, _TLS_MODES)}; give one of {', '.join(_TLS_MODES)}"
        raise ConfigurationError(message)
    at = options.get("port", str(PORT)) if port is None else str(port)
    if not (at.isdecimal() and 0 < int(at) < 1 << 16):
        message = f"port is {at!r}; give a number from 1 to 65535"
        raise ConfigurationError(message)
    return ServerAddress(
        found["cluster"],
        unquote(parts.username or "") or options.get("user") or getpass.getuser(),
        parts.hostname or options.get("host", "localhost"),
        int(at),
        None if parts.hostname else options.get("socket"),
        options.get("password"),
        mode,
        options.get("ssl_ca"),
        options.get("ssl_cert"),
        options.get("ssl_key"),
    )


def _client_options(defaults_file: Path | None) -> dict[str, str]:
    files = [Path(each).expanduser() for each in _FILES] if defaults_file is None else [defaults_file]
    found: dict[str, str] = {}
    for file in files:
        if defaults_file is not None or file.is_file():
            found.update(_options_of_file(file, frozenset()))
    return {name: value for name, value in found.items() if name in _OPTIONS}


def _options_of_file(file: Path, within: frozenset[Path]) -> Iterator[tuple[str, str]]:
    """Yield the options of a file and of those that it includes."""
    if file in within:
        return
    for _, line in lines_of_groups(read_text(file), _GROUP):
        directive, _, path = line.partition(" ")
        place = Path(path.strip())
        if directive in ("!include", "!includedir"):
            for each in sorted(place.glob("*.cnf")) if place.is_dir() else [place]:
                if each.is_file():
                    yield from _options_of_file(each, within | {file})
        elif "=" in line:  # a password without a value is one to ask for
            yield option_of_line(line)
