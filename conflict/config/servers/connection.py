"""
A connection that reads: it asks a server, and says in a sentence what went wrong.

The session is read only (``SET SESSION TRANSACTION READ ONLY``). A password is taken from MYSQL_PWD, else from an
option file, else it is asked for on a terminal. Every step has a time limit.

Source: MySQL manual, "Server Error Message Reference", "Client Error Message Reference".
"""

from __future__ import annotations

import getpass
import os
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from conflict.config.servers.addresses import ServerAddress
from conflict.errors import ConfigurationError
from conflict.extras import imported

if TYPE_CHECKING:
    import ssl


Cell = str | bytes | None
Row = Mapping[str, Cell]
CONNECT_SECONDS, ANSWER_SECONDS = 10, 30
# Error numbers of servers.
_DENIED = {1044, 1142, 1143, 1227, 1370, 1410, 3523}
_UNKNOWN = {1046, 1049, 1064, 1109, 1146, 1381, 1193}
_WRONG_PASSWORD, _NO_TLS_HERE, _TLS_NEEDED = {1045, 1698}, 2026, 3159
_LOST, _NO_CONNECTION = {2006, 2013, 2055, 1053, 1077}, {2002, 2003}
_NOT_MYSQL = "what answers there is no MySQL server, or stopped; give the port of an SQL node"
_WHERE_PASSWORDS_ARE = "set MYSQL_PWD, write password = ... under [client] of an option file, or run it on a terminal"


class DeniedError(ConfigurationError):
    """A privilege is missing."""


class UnknownError(ConfigurationError):
    """The server does not know the statement, or what it names."""


class _Client(Protocol):
    """What is needed of a connection of PyMySQL."""

    def cursor(self) -> Any: ...
    def close(self) -> None: ...


@attrs.frozen
class RunningServer:
    """
    A server that answers.

    Attributes:
        address: Its address.
        client: The connection.
        account: The account as the server knows it, as it stands after TO in a GRANT statement.
        encrypted: Whether TLS, or a socket file, protects the connection.
    """

    address: ServerAddress
    client: _Client = attrs.field(repr=False)
    account: str = ""
    encrypted: bool = False

    def ask(self, statement: str, privilege: str = "") -> list[Row]:
        """
        Return the rows of an answer, all values as text; those of binary columns as bytes.

        Args:
            statement: A statement that reads.
            privilege: What it needs, as it stands in a GRANT statement: ``REPLICATION CLIENT ON *.*``.

        Raises:
            DeniedError: The privilege is missing.
            UnknownError: The server knows no such statement or table.
            ConfigurationError: The connection was lost, or the server says something else.
        """
        try:
            with self.client.cursor() as cursor:
                cursor.execute(statement)
                names = [column[0] for column in cursor.description or ()]
                return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        except Exception as error:
            raise _refusal(self.address, error, statement, privilege, self.account) from error


@contextmanager
def connected(address: ServerAddress) -> Iterator[RunningServer]:
    """
    Connect to a server for a while.

    Raises:
        ConfigurationError: It cannot be reached, lets nobody in, or is no MySQL server; in the block, the same of what
            is asked.
    """
    server = _connect(address)
    try:
        server.ask("SET SESSION TRANSACTION READ ONLY")
        # Definitions as others print them, and moments in UTC, as results have them.
        server.ask("SET SESSION sql_mode = '', SESSION sql_quote_show_create = 1, SESSION time_zone = '+00:00'")
        (who,) = server.ask("SELECT CURRENT_USER() AS account, VERSION() AS version")
        version = str(who["version"])
        if "mariadb" in version.lower():
            message = f"{address} is MariaDB {version}, which has no NDB; give an SQL node of MySQL NDB Cluster"
            raise ConfigurationError(message)
        user, _, host = str(who["account"]).rpartition("@")
        yield attrs.evolve(server, account="@".join(f"'{each.replace(chr(39), chr(39) * 2)}'" for each in (user, host)))
    finally:
        server.client.close()


def with_password(address: ServerAddress) -> ServerAddress:
    """Return an address with its password, which is asked for on a terminal if nothing else gives it."""
    return attrs.evolve(address, password=_password(address))


def _connect(address: ServerAddress) -> RunningServer:
    pymysql = imported("pymysql")
    options: dict[str, Any] = {"unix_socket": address.socket} if address.socket else {}
    try:
        client = pymysql.connect(
            host=address.host,
            port=address.port,
            user=address.user,
            password=_password(address).encode(),
            charset="utf8mb4",
            conv={},
            connect_timeout=CONNECT_SECONDS,
            read_timeout=ANSWER_SECONDS,
            write_timeout=ANSWER_SECONDS,
            autocommit=None,
            ssl=_tls(address),
            ssl_disabled=address.tls == "DISABLED",
            **options,
        )
    except Exception as error:
        raise _refusal(address, error) from error
    return RunningServer(address, client, encrypted=bool(client._secure))  # noqa: SLF001  # nothing else tells it


def _password(address: ServerAddress) -> str:
    given = os.environ.get("MYSQL_PWD", address.password)
    if given is None and sys.stdin is not None and sys.stdin.isatty():
        given = getpass.getpass(f"Password of {address}: ")
    return given or ""


def _tls(address: ServerAddress) -> ssl.SSLContext | None:
    """Return what TLS needs; None for that of PREFERRED, which goes on without it if the server has none."""
    if address.tls in ("DISABLED", "PREFERRED") and not (address.ca or address.certificate):
        return None
    try:
        import ssl  # a Python that was built without OpenSSL has none  # noqa: PLC0415
    except ImportError as error:
        message = f"{address}: this Python has no ssl, and so no TLS; take another one, or set ssl-mode = DISABLED"
        raise ConfigurationError(message) from error
    verified = address.tls.startswith("VERIFY") or address.ca is not None
    try:
        context = ssl.create_default_context(cafile=address.ca)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # the authority that a server makes itself lacks what it asks
        context.check_hostname = address.tls == "VERIFY_IDENTITY"
        context.verify_mode = ssl.CERT_REQUIRED if verified else ssl.CERT_NONE
        if address.certificate is not None:
            context.load_cert_chain(address.certificate, address.key)
    except (OSError, ValueError) as error:
        files = ", ".join(filter(None, (address.ca, address.certificate, address.key)))
        message = f"{address}: the files for TLS ({files}) cannot be used: {getattr(error, 'strerror', error)}"
        raise ConfigurationError(message) from error
    return context


def _refusal(
    address: ServerAddress, error: Exception, statement: str = "", privilege: str = "", account: str = ""
) -> ConfigurationError:
    """Return an error as a sentence that says what to do."""
    if isinstance(error, ConfigurationError):
        return error
    code, said = _told(error)
    cause = getattr(error, "original_exception", error)
    if statement and code in _DENIED:
        return DeniedError(f"{address}: {account} may not run {statement}; GRANT {privilege} TO {account}")
    if statement and code in _UNKNOWN:
        return UnknownError(f"{address}: {statement}: {said}")
    tls = sys.modules.get("ssl")
    if tls is not None and isinstance(cause, tls.SSLError):
        reason = getattr(cause, "verify_message", None) or cause.reason or str(cause)
        advice = "correct ssl-mode and ssl-ca under [client] of the option file"
        return ConfigurationError(f"{address}: no TLS connection ({reason}); {advice}")
    if code == _NO_TLS_HERE:
        advice = "turn TLS on there, or set ssl-mode = PREFERRED under [client] of the option file"
        return ConfigurationError(f"{address} has no TLS, and ssl-mode is {address.tls}; {advice}")
    if code == _TLS_NEEDED:
        return ConfigurationError(f"{address} takes connections with TLS only; set ssl-mode = REQUIRED under [client]")
    if code in _WRONG_PASSWORD:
        return ConfigurationError(f"{address}: the server refuses the user or the password; {_WHERE_PASSWORDS_ARE}")
    if code in _LOST and statement:
        why = "did not answer in time" if isinstance(error.__cause__ or error.__context__, TimeoutError) else "stopped"
        return ConfigurationError(f"{address} {why} during {statement}; nothing was written, run the command again")
    if isinstance(cause, OSError) or code in _NO_CONNECTION:
        why = getattr(cause, "strerror", None) or str(cause)
        return ConfigurationError(f"{address} cannot be reached ({why}); is it the right host and port?")
    if code in _LOST or isinstance(error, (struct.error, IndexError, ValueError, AssertionError)) or code is None:
        return ConfigurationError(f"{address}: {_NOT_MYSQL}")
    return ConfigurationError(f"{address}: the server says: {said} ({code})")


def _told(error: Exception) -> tuple[int | None, str]:
    """Return number and text of an error of the server or of its client; no number if it is neither."""
    arguments = error.args
    if len(arguments) >= 2 and isinstance(arguments[0], int):
        return arguments[0], str(arguments[1])
    return None, str(error)
