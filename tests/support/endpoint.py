"""A stand-in for a model endpoint: OpenAI Chat Completions and Responses, Anthropic Messages, streamed or not.

    python tests/support/endpoint.py --port 0 --latency-ms 200      prints its base URL, then serves until it is ended

    with start_endpoint(latency_ms=50) as endpoint:                 the same in a process of its own
        ... endpoint.url, endpoint.stats(), endpoint.control(error_rate=0.1)

A hand-written HTTP/1.1 loop, so that it answers several thousand requests a second and is never what a benchmark measures.

What it answers: `[[answer:TEXT]]` in the last place where it occurs in the request makes TEXT the answer, else `--text`. With
tools in the request it first calls the first tool, `--tool-turns` times, with the simplest arguments of its schema. A model
name that ends in `-120ms`, or the header `x-latency-ms`, sets the latency of a request. Every `--silent-every`-th
request is accepted and never answered. `GET /stats` counts, `GET
/stats?reset=1` counts anew, `GET /control?error_rate=0.5&error_status=429` changes any option.
"""

import argparse
import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl
from urllib.request import urlopen

import orjson

REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}
GOLDEN, PLASTIC = 0.6180339887498949, 0.7548776662466927
"""Irrational steps: multiples modulo 1 are spread evenly, so that shares and jitter come out exactly and repeatably."""


@dataclass
class Options:
    """What the endpoint does; every field is a command-line option and can be changed while it serves."""

    port: int = 0
    latency_ms: float = 0.0
    jitter_ms: float = 0.0
    text: str = "\\boxed{42}"
    tool_turns: int = 1
    silent_every: int = 0
    error_rate: float = 0.0
    error_status: int = 500
    retry_after: str = ""
    api_key: str = ""
    model: str = "fake-model"
    chunks: int = 2
    chunk_ms: float = 0.0
    stamped: bool = False
    """Whether an event that is written on its own says when, by the machine's monotonic clock, in seconds."""


@dataclass
class Stats:
    """Counters since the start or the last reset. Times are seconds since the epoch."""

    requests: int = 0
    errors: int = 0
    connections: int = 0
    in_flight: int = 0
    max_in_flight: int = 0
    first_at: float | None = None
    last_at: float | None = None
    by_path: dict[str, int] = field(default_factory=dict)


class Server:
    """Answers requests; one per process."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.stats = Stats()
        self.count = 0

    def answer(self, connection: "Connection", method: bytes, target: bytes, headers: bytes, body: bytes) -> None:
        path, _, query = target.decode().partition("?")
        if path == "/stats":
            connection.send_json(200, self.stats.__dict__)
            if "reset=1" in query:
                self.stats = Stats(in_flight=self.stats.in_flight)
        elif path == "/control":
            for name, value in parse_qsl(query, keep_blank_values=True):
                setattr(self.options, name, type(getattr(self.options, name))(value))
            connection.send_json(200, {"ok": True})
        elif path == "/health":
            connection.send_json(200, {"status": "ok"})
        elif not self.authorized(headers):
            self.error(connection, 401, "Incorrect API key provided.", "invalid_api_key")
        elif path.endswith("/models"):
            served = {"id": self.options.model, "object": "model", "created": 0, "owned_by": "stand-in"}
            connection.send_json(200, {"object": "list", "data": [served]})
        elif method == b"POST" and path.rpartition("/")[2] in DIALECTS:
            self.complete(connection, path.rpartition("/")[2], headers, body)
        else:
            self.error(connection, 404, f"no route {path}", "not_found")

    def authorized(self, headers: bytes) -> bool:
        key = self.options.api_key.encode()
        return not key or key in (header(headers, b"authorization")[7:], header(headers, b"x-api-key"))

    def complete(self, connection: "Connection", dialect: str, headers: bytes, body: bytes) -> None:
        stats, options = self.stats, self.options
        self.count += 1
        number, now = self.count, time.time()
        stats.requests += 1
        stats.by_path[dialect] = stats.by_path.get(dialect, 0) + 1
        stats.first_at = stats.first_at or now
        stats.last_at = now
        if options.silent_every and number % options.silent_every == 0:
            return
        if options.error_rate and number * GOLDEN % 1.0 < options.error_rate:
            self.error(connection, options.error_status, "scripted failure", "server_error")
            return
        try:
            request = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            self.error(connection, 400, f"not JSON: {error}", "invalid_request_error")
            return
        encode, stream = DIALECTS[dialect]
        answer = encode(request, number, plan(request, body, options))
        if request.get("stream"):
            events = stream(answer, options.chunks)
            send = partial(connection.stream, events, options.chunk_ms / 1000, options.stamped)
        else:
            send = partial(connection.send, 200, orjson.dumps(answer))
        latency = self.latency_s(headers, request, number)
        if latency <= 0:
            send()
            return
        stats.in_flight += 1
        stats.max_in_flight = max(stats.max_in_flight, stats.in_flight)
        asyncio.get_running_loop().call_later(latency, self.deliver, send)

    def deliver(self, send: Any) -> None:
        self.stats.in_flight -= 1
        send()

    def latency_s(self, headers: bytes, request: dict[str, Any], number: int) -> float:
        if own := header(headers, b"x-latency-ms"):
            return float(own) / 1000
        if named := re.search(r"-(\d+)ms$", str(request.get("model", ""))):
            return int(named.group(1)) / 1000
        return (self.options.latency_ms + self.options.jitter_ms * (number * PLASTIC % 1.0)) / 1000

    def error(self, connection: "Connection", status: int, words: str, code: str) -> None:
        self.stats.errors += 1
        extra = f"retry-after: {self.options.retry_after}\r\n" if self.options.retry_after and status != 401 else ""
        error = {"message": words, "type": code, "param": None, "code": code}
        connection.send(status, orjson.dumps({"type": "error", "error": error}), extra.encode())


class Connection(asyncio.Protocol):
    """One client connection; requests on it are answered one after the other."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.buffer = bytearray()
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.server.stats.connections += 1

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            headers = bytes(self.buffer[: end + 2])
            length = int(header(headers, b"content-length") or 0)
            if len(self.buffer) < end + 4 + length:
                return
            body = bytes(self.buffer[end + 4 : end + 4 + length])
            del self.buffer[: end + 4 + length]
            method, target, _ = headers.split(b" ", 2)
            self.server.answer(self, method, target, headers, body)

    def send(self, status: int, body: bytes, extra: bytes = b"") -> None:
        head = f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}\r\ncontent-type: application/json\r\n"
        self.transport.write(head.encode() + extra + b"content-length: %d\r\n\r\n" % len(body) + body)

    def send_json(self, status: int, value: Any) -> None:
        self.send(status, orjson.dumps(value))

    def stream(self, events: list[bytes], pause_s: float, stamped: bool) -> None:
        """Server-sent events as chunks; with a pause between them each is written on its own."""
        self.transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        if pause_s <= 0:
            self.write_chunk(b"".join(events))
            self.transport.write(b"0\r\n\r\n")
        else:
            self.stream_on(iter(events), asyncio.get_running_loop().time(), pause_s, stamped)

    def stream_on(self, events: Iterator[bytes], due: float, pause_s: float, stamped: bool) -> None:
        event = next(events, None)
        if event is None:
            self.transport.write(b"0\r\n\r\n")
            return
        if stamped:
            event = event.replace(b"data: {", b'data: {"sent_at":%.6f,' % time.monotonic(), 1)
        self.write_chunk(event)
        due += pause_s
        asyncio.get_running_loop().call_at(due, self.stream_on, events, due, pause_s, stamped)

    def write_chunk(self, data: bytes) -> None:
        self.transport.write(b"%x\r\n" % len(data) + data + b"\r\n")


def header(headers: bytes, name: bytes) -> bytes:
    """The value of a header in a request's head, or nothing. HTTP clients differ in how they write names."""
    lower = headers.lower()
    start = lower.find(b"\r\n" + name + b":")
    if start < 0:
        return b""
    start += len(name) + 3
    return headers[start : headers.find(b"\r\n", start)].strip()


@dataclass
class Plan:
    """The answer before it is put into a dialect: a text, or a tool call."""

    text: str = ""
    tool: str | None = None
    arguments: dict[str, Any] = field(default_factory=dict)


def plan(request: dict[str, Any], body: bytes, options: Options) -> Plan:
    tools = request.get("tools")
    if tools:
        done = body.count(b'"tool_call_id"') + body.count(b'"function_call_output"') + body.count(b'"tool_result"')
        if done < options.tool_turns:
            tool = tools[0].get("function") or tools[0]
            schema = tool.get("parameters") or tool.get("input_schema") or {}
            return Plan(tool=tool["name"], arguments=simplest(schema))
    start = body.rfind(b"[[answer:")
    end = body.find(b"]]", start)
    if 0 <= start < end:
        return Plan(text=orjson.loads(b'"' + body[start + 9 : end] + b'"'))
    return Plan(text=options.text)


def simplest(schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments that fit a schema of plain types."""
    plain = {"integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}
    return {
        name: part["enum"][0] if part.get("enum") else plain.get(part.get("type"), "text")
        for name, part in (schema.get("properties") or {}).items()
    }


def pieces(text: str, count: int) -> list[str]:
    """A text cut into at most `count` pieces."""
    size = max(1, -(-len(text) // max(1, count)))
    return [text[start : start + size] for start in range(0, len(text), size)] or [""]


def chat(request: dict[str, Any], number: int, answer: Plan) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.tool:
        function = {"name": answer.tool, "arguments": json.dumps(answer.arguments)}
        message["content"] = None
        message["tool_calls"] = [{"id": f"call_{number}", "type": "function", "function": function}]
    reason = "tool_calls" if answer.tool else "stop"
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1700000000,
        "model": request.get("model", ""),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": reason}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }


def chat_events(answer: dict[str, Any], chunks: int) -> list[bytes]:
    base = {key: answer[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    message = answer["choices"][0]["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if message.get("tool_calls"):
        deltas.append({"tool_calls": [message["tool_calls"][0] | {"index": 0}]})
    else:
        deltas += [{"content": piece} for piece in pieces(message["content"], chunks)]
    events = [base | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events.append(
        base | {"choices": [{"index": 0, "delta": {}, "finish_reason": answer["choices"][0]["finish_reason"]}]}
    )
    events.append(base | {"choices": [], "usage": answer["usage"]})
    return [b"data: " + orjson.dumps(event) + b"\n\n" for event in events] + [b"data: [DONE]\n\n"]


def responses(request: dict[str, Any], number: int, answer: Plan) -> dict[str, Any]:
    item: dict[str, Any]
    if answer.tool:
        item = {"id": f"fc_{number}", "type": "function_call", "status": "completed", "call_id": f"call_{number}"}
        item |= {"name": answer.tool, "arguments": json.dumps(answer.arguments)}
    else:
        part = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
        item = {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1700000000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": request.get("instructions"),
        "model": request.get("model", ""),
        "output": [item],
        "parallel_tool_calls": True,
        "temperature": request.get("temperature", 1.0),
        "tool_choice": request.get("tool_choice", "auto"),
        "tools": request.get("tools") or [],
        "top_p": request.get("top_p", 1.0),
        "metadata": {},
        "usage": {
            "input_tokens": 100,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 20,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 120,
        },
    }


def responses_events(answer: dict[str, Any], chunks: int) -> list[bytes]:
    item = answer["output"][0]
    at = {"item_id": item["id"], "output_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": answer | {"status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item | {"status": "in_progress"}},
    ]
    if item["type"] == "message":
        part = item["content"][0]
        text = {**at, "content_index": 0}
        events.append({"type": "response.content_part.added", **text, "part": part | {"text": ""}})
        events += [
            {"type": "response.output_text.delta", **text, "delta": piece} for piece in pieces(part["text"], chunks)
        ]
        events.append({"type": "response.output_text.done", **text, "text": part["text"]})
        events.append({"type": "response.content_part.done", **text, "part": part})
    else:
        events.append({"type": "response.function_call_arguments.delta", **at, "delta": item["arguments"]})
        events.append({"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"]})
    events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    events.append({"type": "response.completed", "response": answer})
    return [named(event | {"sequence_number": number}) for number, event in enumerate(events)]


def messages(request: dict[str, Any], number: int, answer: Plan) -> dict[str, Any]:
    content: dict[str, Any] = {"type": "text", "text": answer.text}
    if answer.tool:
        content = {"type": "tool_use", "id": f"toolu_{number}", "name": answer.tool, "input": answer.arguments}
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", ""),
        "content": [content],
        "stop_reason": "tool_use" if answer.tool else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 60,
            "cache_read_input_tokens": 30,
            "cache_creation_input_tokens": 10,
            "output_tokens": 20,
        },
    }


def messages_events(answer: dict[str, Any], chunks: int) -> list[bytes]:
    block = answer["content"][0]
    start = answer | {"content": [], "stop_reason": None, "usage": answer["usage"] | {"output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    if block["type"] == "text":
        empty, deltas = (
            block | {"text": ""},
            [{"type": "text_delta", "text": text} for text in pieces(block["text"], chunks)],
        )
    else:
        empty = block | {"input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    events.append({"type": "content_block_start", "index": 0, "content_block": empty})
    events += [{"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas]
    events.append({"type": "content_block_stop", "index": 0})
    stop = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    events.append(
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": answer["usage"]["output_tokens"]}}
    )
    events.append({"type": "message_stop"})
    return [named(event) for event in events]


def named(event: dict[str, Any]) -> bytes:
    data: bytes = orjson.dumps(event)
    return b"event: " + str(event["type"]).encode() + b"\ndata: " + data + b"\n\n"


DIALECTS: dict[str, tuple[Any, Any]] = {
    "completions": (chat, chat_events),
    "responses": (responses, responses_events),
    "messages": (messages, messages_events),
}


@dataclass
class RunningEndpoint:
    """An endpoint in a process of its own. `url` ends in `/v1`."""

    url: str
    process: subprocess.Popen[str]

    def stats(self, *, reset: bool = False) -> dict[str, Any]:
        """Its counters."""
        return self._get("/stats?reset=1" if reset else "/stats")

    def control(self, **options: Any) -> None:
        """Change options while it serves."""
        self._get("/control?" + "&".join(f"{name}={value}" for name, value in options.items()))

    def _get(self, path: str) -> dict[str, Any]:
        with urlopen(self.url.removesuffix("/v1") + path, timeout=10) as answer:
            return dict(json.load(answer))


@contextmanager
def start_endpoint(**options: Any) -> Iterator[RunningEndpoint]:
    """An endpoint with these options (see Options), ended with the block."""
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    command = [sys.executable, str(Path(__file__).resolve()), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url:
            raise RuntimeError(f"the stand-in endpoint did not start: exit {process.wait()}")
        yield RunningEndpoint(url, process)
    finally:
        process.terminate()
        process.wait(timeout=10)


async def serve(options: Options) -> None:
    """Serve until SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    endpoint = Server(options)
    server = await loop.create_server(lambda: Connection(endpoint), "127.0.0.1", options.port, backlog=4096)
    ended = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, ended.set)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await ended.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in fields(Options):
        parser.add_argument(f"--{option.name.replace('_', '-')}", type=type(option.default), default=option.default)
    asyncio.run(serve(Options(**vars(parser.parse_args()))))


if __name__ == "__main__":
    main()
