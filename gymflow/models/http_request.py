"""The head of an HTTP/1.1 request, as bytes."""

import base64
import re
from collections.abc import Mapping
from urllib.parse import quote, unquote, urlsplit

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ENCODINGS = {"accept": "*/*", "accept-encoding": "gzip, deflate", "user-agent": "gymflow"}


def request_head(method: str, url: str, headers: Mapping[str, str]) -> bytes:
    """Request line and headers, without the empty line behind them. Credentials in the URL become an authorization header,
    unless there is one. Raises ValueError for a header that would break out of its line."""
    parts = urlsplit(url)
    target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~") + (f"?{parts.query}" if parts.query else "")
    host = parts.netloc.rpartition("@")[2]
    if not host.isascii():
        host = host.encode("idna").decode()
    lines = {"host": host} | _ENCODINGS | {name.lower(): value for name, value in headers.items()}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        lines.setdefault("authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")
    return f"{method} {target} HTTP/1.1\r\n".encode() + header_lines(lines)


def header_lines(headers: Mapping[str, str]) -> bytes:
    """Headers as lines. Raises ValueError for one that would break out of its line."""
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or "\r" in value or "\n" in value or "\0" in value:
            raise ValueError(f"the header {name!r} cannot be sent: it holds a line break, or its name is none")
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()
