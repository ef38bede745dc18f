"""The plain HTTP client against servers that are down to the byte what a test says."""

import asyncio
import gzip
import itertools
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymflow.contracts.outcome import FailureKind
from gymflow.models import ModelError
from gymflow.models import connections as connections_module
from gymflow.models.connections import BrokenOff, Connections, NoAnswer
from gymflow.models.http import Endpoint
from gymflow.models.http_answer import Reader
from gymflow.models.http_request import request_head

HEAD = b"GET / HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
async def listen() -> AsyncIterator[Callable[..., Awaitable[str]]]:
    """`await listen(serve)`: the URL of a server that runs `serve` on every connection."""
    servers: list[asyncio.Server] = []

    async def start(serve: Serve, context: ssl.SSLContext | None = None) -> str:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        servers.append(server)
        return f"http{'s' if context else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    yield start
    for server in servers:
        server.close()


def answering(*answers: bytes) -> Serve:
    """One answer after another on each connection, then the end of it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
        writer.close()

    return serve


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nfir\r\nA;x=y\r\nst, second\r\n0\r\nX-T: 1\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (OK, b"ok"),
        (CHUNKED, b"first, second"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"ok"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", b""),
    ],
)
@given(cuts=st.sets(st.integers(1, 90)))
def test_an_answer_is_the_same_wherever_its_bytes_are_cut(sent, body, cuts):
    edges = [0, *sorted(cut for cut in cuts if cut < len(sent)), len(sent)]
    reader, answers = Reader(), []
    for start, end in itertools.pairwise(edges):
        answers.append(reader.feed(sent[start:end]))
    assert answers[:-1] == [None] * (len(answers) - 1)
    assert answers[-1][2] == body
    assert reader.keeps_alive


@pytest.mark.parametrize(
    "sent",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nfolded: a\r\n b: c\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-5\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nabcd\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nmore",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-encoding: gzip\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-encoding: br\r\n\r\nok",
        b"x" * 300_000,
    ],
)
def test_what_is_not_an_answer_is_an_error(sent):
    with pytest.raises(ValueError, match=r"it|chunk"):
        Reader().feed(sent)


def test_a_compressed_answer_and_a_repeated_header_are_read():
    packed = gzip.compress(b"hello")
    head = b"HTTP/1.1 200 OK\r\nVia: a\r\nvia: b\r\nContent-Encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)
    status, headers, body = Reader().feed(head + packed)
    assert (status, headers["via"], body) == (200, "a, b", b"hello")


async def test_a_connection_is_used_again_and_calls_at_once_have_their_own(listen):
    opened = 0

    async def serve(reader, writer):
        nonlocal opened
        opened += 1
        while await reader.readuntil(b"\r\n\r\n"):
            await asyncio.sleep(0.01)
            writer.write(OK)

    connections = Connections(await listen(serve))
    for _ in range(3):
        await connections.exchange(HEAD, b"")
    assert opened == 1
    await asyncio.gather(*(connections.exchange(HEAD, b"") for _ in range(5)))
    assert opened == 5
    await connections.close()


@pytest.mark.parametrize(
    "first",
    [
        OK,  # closed behind it, as a server does with idle connections
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\n\r\nok",  # its end is the connection's
    ],
)
async def test_a_closed_connection_costs_no_call(listen, first):
    connections = Connections(await listen(answering(first)))
    for _ in range(3):
        assert (await connections.exchange(HEAD, b""))[2] == b"ok"
    await connections.close()


async def test_a_call_that_crosses_the_closing_of_an_idle_connection_is_made_again(listen):
    served = 0

    async def serve(reader, writer):
        nonlocal served
        served += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        if served == 1:
            await reader.readuntil(b"\r\n\r\n")
            writer.transport.abort()  # the second request has been read, nothing answered

    connections = Connections(await listen(serve))
    await connections.exchange(HEAD, b"")
    assert (await connections.exchange(HEAD, b""))[2] == b"ok"
    assert served == 2
    await connections.close()


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"", NoAnswer),
        (b"HTTP/1.1 200 OK\r\ncontent-le", BrokenOff),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nshort", BrokenOff),
        (CHUNKED[:-3], BrokenOff),
        (b"hello, this is not HTTP\r\n\r\n", BrokenOff),
    ],
)
async def test_an_answer_that_breaks_off_is_an_error(listen, sent, error):
    connections = Connections(await listen(answering(sent)))
    with pytest.raises(error):
        await connections.exchange(HEAD, b"")
    await connections.close()


async def test_a_cancelled_call_closes_its_connection(listen):
    gone = asyncio.Event()

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        await reader.read()
        gone.set()

    connections = Connections(await listen(serve))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await connections.exchange(HEAD, b"")
    async with asyncio.timeout(2):
        await gone.wait()
    await connections.close()


async def test_unasked_data_ends_an_idle_connection(listen):
    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await asyncio.sleep(0.02)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong")

    connections = Connections(await listen(serve))
    await connections.exchange(HEAD, b"")
    await asyncio.sleep(0.05)
    assert (await connections.exchange(HEAD, b""))[2] == b"ok"
    await connections.close()


async def test_an_address_that_refuses_is_passed_over(listen, monkeypatch):
    url = await listen(answering(OK, OK))
    port = url.rpartition(":")[2]
    asked = 0

    async def getaddrinfo(host, _, **__):
        nonlocal asked
        asked += 1
        return [(None, None, None, None, (address, int(port))) for address in ("127.0.0.2", "127.0.0.1")]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    connections = Connections(f"http://two.example:{port}")
    answers = await asyncio.gather(*(connections.exchange(HEAD, b"") for _ in range(4)))
    assert [body for _, _, body in answers] == [b"ok"] * 4
    assert asked == 1
    await connections.close()


async def test_tls_is_spoken_and_a_certificate_is_checked(listen, tmp_path, monkeypatch):
    certificate = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    url = (await listen(answering(OK, OK), context)).replace("127.0.0.1", "localhost")
    endpoint = Endpoint(url, headers={})
    await endpoint.open()
    with pytest.raises(ModelError, match="certificate verify failed") as refused:
        await endpoint.send("GET", "/")
    assert refused.value.kind is FailureKind.MODEL_UNREACHABLE
    monkeypatch.setattr(connections_module, "_tls_context", lambda: ssl.create_default_context(cafile=certificate))
    assert (await endpoint.send("GET", "/"))[2] == b"ok"
    await endpoint.close()


def self_signed(folder) -> str:
    """A key and a certificate for localhost in one file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "localhost.pem"
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(key.private_bytes(*form) + certificate.public_bytes(serialization.Encoding.PEM))
    return str(path)


def test_the_head_of_a_request():
    head = request_head("POST", "http://us%40er:pw@h:8000/v1/a b?x=1", {"X-Team": "t"}).decode().split("\r\n")
    assert head[0] == "POST /v1/a%20b?x=1 HTTP/1.1"
    assert {"host: h:8000", "x-team: t", "authorization: Basic dXNAZXI6cHc="} <= set(head)
    assert "authorization: Bearer k" in request_head("GET", "http://u:p@h/", {"Authorization": "Bearer k"}).decode()


async def test_a_header_that_would_break_out_of_its_line_is_not_sent(listen):
    endpoint = Endpoint(await listen(answering(OK)), headers={"x-team": "a\r\nhost: other"})
    await endpoint.open()
    with pytest.raises(ModelError, match="'x-team' cannot be sent"):
        await endpoint.send("GET", "/")
    await endpoint.close()
