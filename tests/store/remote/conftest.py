"""A bucket on moto, a proxy before it that can answer 503, and machines: a cache folder each."""

import http.client
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gymflow.store import Store, remote
from gymflow.store.remote.bucket import Bucket

COMMAND = [sys.executable, "-m", "cli.main"]


@pytest.fixture(scope="session")
def moto() -> Iterator[tuple[str, int]]:
    pytest.importorskip("moto")
    pytest.importorskip("flask_cors")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield server.get_host_and_port()
    server.stop()


class Service:
    """The endpoint that commands are given. `refuse(method, path)` true: that request is answered with 503, or `status`."""

    def __init__(self, moto: tuple[str, int]) -> None:
        self.refuse: Callable[[str, str], bool] = lambda method, path: False
        self.lose: Callable[[str, str], bool] = lambda method, path: False
        """What is done, and answered with 503 all the same."""
        self.status, self.code = 503, "SlowDown"
        self.seen: list[tuple[str, str]] = []
        self.refused = 0
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                pass

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                service.seen.append((self.command, self.path))
                refused, lost = service.refuse(self.command, self.path), service.lose(self.command, self.path)
                if not refused:
                    connection = http.client.HTTPConnection(*moto)
                    connection.request(self.command, self.path, body, dict(self.headers))
                    reply = connection.getresponse()
                    status, headers, content = reply.status, reply.getheaders(), reply.read()
                    connection.close()
                if refused or lost:
                    service.refused += 1
                    status, headers = service.status, []
                    content = f"<Error><Code>{service.code}</Code><Message>no</Message></Error>".encode()
                self.send_response_only(status)
                for name, value in headers:
                    if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def keys(self, method: str) -> list[str]:
        """The objects that requests of a method were about."""
        return [path.partition("?")[0] for how, path in self.seen if how == method]


class Machine:
    """One that has nothing of the others but the bucket."""

    def __init__(self, service: Service, folder: Path, url: str) -> None:
        self.url, self.folder = url, folder
        self.variables = {
            "AWS_ENDPOINT_URL_S3": service.url, "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", "GYMFLOW_INLINE": "1",
            "XDG_CACHE_HOME": str(folder), "GYMFLOW_STORE": url,
        }  # fmt: skip

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*COMMAND, *arguments],
            env=os.environ | self.variables,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def gym(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, stdout, stderr."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def files(self, pattern: str) -> list[Path]:
        """Files of its working folder."""
        return sorted(self.folder.glob(f"gymflow/stores/*/{pattern}"))

    @contextmanager
    def process(self) -> Iterator[Store]:
        """The store, as a process of this machine opens it; what it wrote is uploaded at the end."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.variables.items():
                patch.setenv(name, value)
            patch.setattr(remote, "_open", {})
            yield Store(self.url)
            remote.settle()


@pytest.fixture
def service(moto: tuple[str, int]) -> Iterator[Service]:
    made = Service(moto)
    yield made
    made.refuse = made.lose = lambda method, path: False  # what a test left behind may go on
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def s3(service: Service) -> Any:
    import boto3

    client = boto3.client(
        "s3", endpoint_url=service.url, aws_access_key_id="t", aws_secret_access_key="t", region_name="us-east-1"
    )
    client.create_bucket(Bucket="bucket")
    return client


@pytest.fixture
def machine(s3: Any, service: Service, tmp_path: Path) -> Callable[[str], Machine]:
    return lambda name: Machine(service, tmp_path / name, f"s3://bucket/{tmp_path.name}")


@pytest.fixture
def bucket(machine: Callable[[str], Machine]) -> Iterator[Bucket]:
    """As a machine opens it."""
    one = machine("a")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in one.variables.items():
            patch.setenv(name, value)
        yield Bucket(one.url)
