"""One HTTP/1.1 answer, put together from bytes as they arrive.

Framing follows RFC 9112, section 6.3: length, chunks, or the end of the connection. An answer that ends before its framing says
so is an error, never a short answer.
"""

import re
import zlib

MAX_HEAD = 256 * 1024
_CHUNK_SIZE = re.compile(rb"[0-9a-fA-F]{1,15}")

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers by lower-case name, body."""


class Reader:
    """Reads one answer. Raises ValueError for what is not HTTP, or breaks off."""

    def __init__(self) -> None:
        self.begun = False
        self.keeps_alive = True
        """Whether the connection can carry another exchange after this answer."""
        self._rest = bytearray()
        self._status = 0
        self._headers: dict[str, str] = {}
        self._body: list[bytes] | None = None
        self._missing: int | None = None
        self._chunked = False

    def feed(self, data: bytes) -> Answer | None:
        """The answer once it is complete."""
        self.begun = True
        while self._body is None:
            if self._rest:
                self._rest += data
                data = bytes(self._rest)
                self._rest.clear()
            head, end, behind = data.partition(b"\r\n\r\n")
            if not end:
                if len(head) > MAX_HEAD:
                    raise ValueError("its head does not end")
                self._rest += head
                return None
            data = behind
            self._begin(head)
        if self._chunked:
            return self._chunks(data)
        self._body.append(data)
        if self._missing is None:
            return None
        self._missing -= len(data)
        if self._missing < 0:
            raise ValueError("it is longer than it says")
        return self._whole() if self._missing == 0 else None

    def at_end(self) -> Answer:
        """The answer when the connection has ended. Raises ValueError unless that is how its end was to be told."""
        if self._body is None or self._chunked or self._missing is not None:
            raise ValueError("the connection was closed before the answer was complete")
        return self._whole()

    def _begin(self, head: bytes) -> None:
        first, *lines = head.split(b"\r\n")
        version, _, rest = first.partition(b" ")
        if version not in (b"HTTP/1.1", b"HTTP/1.0") or not rest[:3].isdigit():
            raise ValueError("it is not HTTP/1.1")
        self._status = int(rest[:3])
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(b":")
            if not colon or name != name.strip():
                raise ValueError("its head is malformed")
            key, text = name.decode("latin-1").lower(), value.strip().decode("utf-8", "replace")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
        self._headers = headers
        if 100 <= self._status < 200:
            if self._status == 101:
                raise ValueError("it switches to another protocol")
            return  # an interim answer: the real one follows
        self._body = []
        connection = headers.get("connection", "").lower()
        self.keeps_alive = "keep-alive" in connection if version == b"HTTP/1.0" else "close" not in connection
        self._frame(headers)

    def _frame(self, headers: dict[str, str]) -> None:
        if self._status in (204, 304):
            self._missing = 0
        elif coding := headers.get("transfer-encoding"):
            if coding.lower() != "chunked":
                raise ValueError(f"its transfer-encoding is {coding}")
            self._chunked = True
        elif "content-length" in headers:
            length = headers["content-length"].partition(",")[0]  # some say it twice
            if not (length.isascii() and length.isdecimal()):
                raise ValueError(f"its content-length is {length!r}")
            self._missing = int(length)
        else:
            self.keeps_alive = False

    def _chunks(self, data: bytes) -> Answer | None:
        """RFC 9112, section 7.1; trailers are of no interest."""
        assert self._body is not None
        rest = self._rest
        rest += data
        at = 0
        while (line_end := rest.find(b"\r\n", at)) >= 0:
            size_text = bytes(rest[at:line_end].partition(b";")[0].strip())
            if not _CHUNK_SIZE.fullmatch(size_text):
                raise ValueError("a chunk has no size")
            size = int(size_text, 16)
            if size == 0:
                trailers_end = rest.find(b"\r\n\r\n", line_end)
                if trailers_end < 0:
                    break
                if trailers_end + 4 != len(rest):
                    raise ValueError("it is longer than it says")
                return self._whole()
            end = line_end + 2 + size
            if len(rest) < end + 2:
                break
            if rest[end : end + 2] != b"\r\n":
                raise ValueError("a chunk is longer than it says")
            self._body.append(bytes(rest[line_end + 2 : end]))
            at = end + 2
        else:
            if len(rest) - at > MAX_HEAD:
                raise ValueError("a chunk has no size")
        del rest[:at]
        return None

    def _whole(self) -> Answer:
        assert self._body is not None
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        coding = self._headers.get("content-encoding", "identity").lower()
        if coding in ("gzip", "x-gzip", "deflate"):
            try:
                body = zlib.decompress(body, 32 + zlib.MAX_WBITS)
            except zlib.error as error:
                raise ValueError(f"its {coding} is damaged: {error}") from error
        elif coding != "identity":
            raise ValueError(f"its content-encoding is {coding}")
        return self._status, self._headers, body
