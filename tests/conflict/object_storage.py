"""An S3 server on loopback (moto), which counts what it is asked and can refuse some of it."""

import os
import random
import re
import signal
import threading
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

import attrs
import boto3
from moto.core import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from s3fs import S3FileSystem
from werkzeug.serving import WSGIRequestHandler, make_server

from ndb_formats import stored

BUCKET = "lake"
_REFUSALS = {"503 Slow Down": "SlowDown", "500 Internal Server Error": "InternalError"}


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"  # connections stay open

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Print nothing."""


@attrs.frozen
class Moved:
    """
    A request that moved bytes.

    Attributes:
        method: Its method.
        path: Its path.
        process: Who asked, as its environment has in ``AWS_SDK_UA_APP_ID``; empty if it has nothing.
        bytes: How many bytes it brought, or got if it is a GET.
    """

    method: str
    path: str
    process: str
    bytes: int


class S3:
    """
    The server.

    Attributes:
        url: Where it is.
        requests: Method and path of each request that it answered.
        refused: How many it refused.
        share: Which part of the requests it refuses, from 0 to 1.
        lost: Paths with this text in them are written, and the answer is an error.
        moved: The requests for objects, with the bytes that they moved.
        killed: A process that is killed at a request, and the number of that request, counted from now on.
    """

    def __init__(self, seed: int = 0) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._random, self._lock = random.Random(seed), threading.Lock()
        self.requests: list[str] = []
        self.refused, self.share, self.lost = 0, 0.0, ""
        self.moved: list[Moved] = []
        self.killed: tuple[int, int] | None = None
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=_Quiet)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def _answer(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        with self._lock:
            refuses = self._random.random() < self.share
            status = self._random.choice([*_REFUSALS])
            self.refused += refuses
        if refuses:
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            return _error(start, status)
        with self._lock:
            self.requests.append(
                f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}?{environ.get('QUERY_STRING', '')}"
            )
            self._kill()
        if self.lost and self.lost in environ["PATH_INFO"] and environ["REQUEST_METHOD"] == "PUT":
            self.lost = ""
            list(self._moto(environ, lambda *_: None))
            return _error(start, "500 Internal Server Error")
        counting = self._counting(environ, start)
        return _part_of_object(environ, counting) or self._moto(environ, counting)

    def _kill(self) -> None:
        """Kill a process if it is its time."""
        if self.killed is not None:
            process, left = self.killed
            self.killed = (process, left - 1) if left else None
            if not left:
                os.kill(process, signal.SIGKILL)

    def _counting(self, environ: WSGIEnvironment, start: StartResponse) -> StartResponse:
        """Return what counts the bytes of a request, and then starts its answer."""
        asked = re.search(r"\bapp/(\S+)", environ.get("HTTP_USER_AGENT", ""))

        def counted(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            method, sizes = environ["REQUEST_METHOD"], {name.lower(): value for name, value in headers}
            size = sizes.get("content-length") if method == "GET" else environ.get("CONTENT_LENGTH")
            found = Moved(method, environ["PATH_INFO"], asked.group(1) if asked else "", int(size or 0))
            with self._lock:
                self.moved.append(found)
            return start(status, headers, *more)

        return counted  # type: ignore[return-value]  # it is called as `start` is

    def client(self) -> "boto3.client":
        """Return a client of it."""
        return boto3.client("s3", endpoint_url=self.url)

    def keys(self, below: str = "") -> list[str]:
        """Return the objects that it has."""
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=below)
        return [each["Key"] for page in pages for each in page.get("Contents", ())]

    def put(self, files: Iterable[tuple[str, bytes]]) -> None:
        """Write objects."""
        client = self.client()
        for key, data in files:
            client.put_object(Bucket=BUCKET, Key=key, Body=data)

    def start(self) -> None:
        """Start it, without what an earlier server of this process was given."""
        self._thread.start()
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/moto-api/reset", method="POST")).close()

    def stop(self) -> None:
        """Stop it."""
        self._server.shutdown()
        self._thread.join()


def _part_of_object(environ: WSGIEnvironment, start: StartResponse) -> list[bytes]:
    """Answer who asks for a part of an object there is: moto would read all of it. Empty if something else is asked."""
    wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", environ.get("HTTP_RANGE", ""))
    if wanted is None or environ["REQUEST_METHOD"] != "GET" or environ.get("QUERY_STRING"):
        return []
    bucket, _, name = environ["PATH_INFO"].lstrip("/").partition("/")
    of_bucket: Any = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets.get(bucket)
    key, (first, last) = of_bucket and of_bucket.keys.get(name), map(int, wanted.groups())
    if key is None or not first <= last or first >= key.size:
        return []
    with key.lock:
        key._value_buffer.seek(first)
        data = key._value_buffer.read(last + 1 - first)
    headers = {
        "Content-Length": str(len(data)),
        "Content-Range": f"bytes {first}-{first + len(data) - 1}/{key.size}",
        "Content-Type": "binary/octet-stream",
        "ETag": key.etag,
        "Last-Modified": key.last_modified_RFC1123,
    }
    start("206 Partial Content", list(headers.items()))
    return [data]


def _error(start: StartResponse, status: str) -> list[bytes]:
    body = f"<Error><Code>{_REFUSALS[status]}</Code><Message>refused</Message></Error>".encode()
    start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    return [body]


@contextmanager
def s3_server(setenv: Callable[[str, str], None]) -> Iterator[S3]:
    """Give a server, which this process's libraries use; they forget another one that they have used before."""
    S3FileSystem.clear_instance_cache()
    stored._opened.cache_clear()
    server = S3()
    server.start()
    for name, value in (
        ("AWS_ENDPOINT_URL", server.url),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        setenv(name, value)
    try:
        server.client().create_bucket(Bucket=BUCKET)
        yield server
    finally:
        server.stop()
