"""The process side of `verdict_pool`: makes the verifiers of its order, then answers batches of stored rollouts with verdicts.

Both ways each message is one pickle; the process ends when its input does. An error of any kind ends it, too: the batch is then
scored by the process that gave it, and the error is met there.
"""

import asyncio
import os
import pickle
import sys
from contextlib import suppress
from typing import BinaryIO

from gymflow.registry import Registry
from gymflow.runtime.completing import Scorer
from gymflow.runtime.concurrency import spread
from gymflow.runtime.garbage import rare_collections
from gymflow.runtime.rejudging import environments_of
from gymflow.runtime.verdict_pool import Order, judged_digests
from gymflow.store import Store
from gymflow.store.verdict_rows import encoded


async def serve(order: Order, batches: BinaryIO, answers: BinaryIO) -> None:
    """Answer the order with what judges here, and each batch with its verdicts."""
    document = Store(order.root).run(order.run_id).document
    registry = Registry(order.search_dirs)
    environments, _ = environments_of(registry, document, order.change, None, order.completed)
    scorer = Scorer(order.run_id, order.verdict_set, environments, order.timeout_s)
    for environment in environments.values():
        await environment.verifier.open()
    try:
        answer(answers, judged_digests(environments))
        while True:
            batch = pickle.load(batches)
            answer(answers, encoded(await spread(scorer.score, batch, document.config.limits.concurrency)))
    finally:
        for environment in environments.values():
            await environment.verifier.close()


def answer(answers: BinaryIO, what: object) -> None:
    """Send one message."""
    pickle.dump(what, answers, pickle.HIGHEST_PROTOCOL)
    answers.flush()


def main() -> None:
    """Serve one order."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a verifier prints must not reach the pipe
    with suppress(Exception), rare_collections():
        asyncio.run(serve(pickle.load(sys.stdin.buffer), sys.stdin.buffer, answers))


if __name__ == "__main__":
    main()
