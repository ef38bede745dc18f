"""What a store on S3 costs against one in a folder, on moto in a process of its own: `python tests/perf/bench_s3.py [ROLLOUTS]`.

Prints, for each of three rounds, rollouts per second while they are sampled (200 ms latency, concurrency 64), CPU per rollout and the
seconds until everything is where it is kept; then the requests of the run by kind, and what a second machine asks for to list and to
read it. Nothing is asserted.
"""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3

from gymflow.metrics.summaries import run_summaries
from gymflow.store import Store, remote
from tests.perf.bench_run import config, cpu_s, play
from tests.support.endpoint import start_endpoint

ROUNDS = 3


@contextlib.contextmanager
def bucket() -> Iterator[None]:
    """A bucket, and the variables by which boto3 finds it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ |= {
        "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1",
    }  # fmt: skip
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        boto3.client("s3").create_bucket(Bucket="bench")
        yield
    finally:
        server.terminate()
        server.wait()


def measured(endpoint: Any, rollouts: int, store: str, run_id: str) -> None:
    """One run; a line about it."""
    endpoint.stats(reset=True)
    began, cpu = time.monotonic(), cpu_s()
    done = play(config(endpoint.url, rollouts, concurrency=64), store, run_id).lines[0].rollouts
    ended = time.monotonic()
    remote.settle()
    stats = endpoint.stats()
    print(
        f"{store.partition(':')[0] if '://' in store else 'folder':<8}{done / (stats['last_at'] - stats['first_at']):7.0f}/s  "
        f"{1e3 * (cpu_s() - cpu) / done:6.2f} ms CPU each  run {ended - began:5.1f} s, then {time.monotonic() - ended:4.1f} s"
    )


def counted(what: str, kinds: "Counter[str]") -> None:
    """A line about the requests since the line before."""
    print(f"{what:<34}{sum(kinds.values()):5} requests: {', '.join(f'{n} {name}' for name, n in kinds.most_common())}")
    kinds.clear()


def main() -> None:
    """See the module."""
    rollouts = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    kinds: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        bucket(),
        start_endpoint(text="The answer is (C).", latency_ms=200) as endpoint,
    ):
        os.environ["XDG_CACHE_HOME"] = f"{folder}/one"
        store = Store("s3://bench/store")
        assert store._mirror is not None
        store._mirror.bucket._s3.meta.events.register(
            "before-send.s3", lambda event_name, **_: kinds.update([event_name.rpartition(".")[2]])
        )
        play(config(endpoint.url, 84), f"{folder}/store", "warm")
        kinds.clear()
        for number in range(ROUNDS):
            measured(endpoint, rollouts, f"{folder}/store", f"run{number}")
            measured(endpoint, rollouts, "s3://bench/store", f"run{number}")
            counted("  of the run on S3", kinds)
        os.environ["XDG_CACHE_HOME"] = f"{folder}/two"
        other = Store("s3://bench/store")
        assert other._mirror is not None
        run_summaries(other)
        print(f"another machine, gym runs:        {other._mirror.bucket.requests:5} requests")
        other.run("run0").record(0)
        print(f"another machine, one run as well: {other._mirror.bucket.requests:5} requests")
        held = sum(file.stat().st_size for file in Path(f"{folder}/two").rglob("*") if file.is_file())
        print(f"its working folder:               {held / 1e6:5.1f} MB")


if __name__ == "__main__":
    main()
