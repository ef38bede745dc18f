"""Stands for OpenSandbox's daemon inside a sandbox, which cannot be had here: the routes that its SDK uses, their events and
errors, with the standard library only. It runs as root in a container, as the daemon does.
"""

import email.parser
import email.policy
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

PORT = 44772


class Daemon(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    @property
    def route(self):
        return urlsplit(self.path).path.removeprefix(f"/proxy/{PORT}")

    def answer(self, status, content=b"", kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        whole = bytearray()
        while size := int(self.rfile.readline(), 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return bytes(whole)

    def do_GET(self):
        if self.route == "/ping":
            return self.answer(200)
        if self.route == "/files/download":
            path = pathlib.Path(parse_qs(urlsplit(self.path).query)["path"][0])
            if path.is_file():
                return self.answer(200, path.read_bytes(), "application/octet-stream")
            return self.answer(404, json.dumps({"code": "FILE_NOT_FOUND", "message": f"no file {path}"}).encode())
        return self.answer(404)

    def do_POST(self):
        if self.route == "/command":
            return self.run_command(json.loads(self.body()))
        if self.route == "/files/upload":
            return self.upload(self.body())
        return self.answer(404)

    def upload(self, content):
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        parts = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + content).iter_parts()
        for part in parts:
            payload = part.get_payload(decode=True)
            if part.get_param("name", header="content-disposition") == "metadata":
                wished = json.loads(payload)
            else:
                path = pathlib.Path(wished["path"])
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(payload)
                path.chmod(int(str(wished["mode"]), 8))
        self.answer(200, b"{}")

    def run_command(self, wished):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        writing = threading.Lock()

        def tell(kind, **fields):
            with writing:
                event = {"type": kind, "timestamp": int(time.time() * 1000), **fields}
                self.wfile.write(json.dumps(event).encode() + b"\n\n")
                self.wfile.flush()

        tell("init", text="an-id")
        process = subprocess.Popen(
            ["/bin/sh", "-c", wished["command"]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **wished.get("envs", {})}, user=wished.get("uid"), group=wished.get("gid"), extra_groups=[],
            start_new_session=True, cwd=wished.get("cwd", "/"),
        )  # fmt: skip

        def lines(kind, source):
            for line in source:
                tell(kind, text=line.decode(errors="replace").rstrip("\r\n") or "\n")

        readers = [threading.Thread(target=lines, args=pair) for pair in (("stdout", process.stdout), ("stderr", process.stderr))]  # fmt: skip
        for reader in readers:
            reader.start()
        try:
            code = process.wait(wished.get("timeout", 600_000) / 1000)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
        for reader in readers:
            reader.join(2)
        if code:
            tell("error", error={"ename": "CommandExecError", "evalue": str(code), "traceback": []})
        else:
            tell("execution_complete", execution_time=1)


if __name__ == "__main__":
    sys.exit(ThreadingHTTPServer(("", PORT), Daemon).serve_forever())
