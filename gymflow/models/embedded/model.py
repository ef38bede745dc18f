"""The embedded model as a service: any number of coroutines share one running batch.

One turn of a conversation:

    model = EmbeddedModel.load()
    prompt = model.tokenizer.encode_chat([{"role": "user", "content": "What is 12 + 30?"}])
    generation = await model.generate(GenerationRequest(prompt, stop_token_ids=[model.tokenizer.stop_token_id]))
    reply = parse_reply(model.tokenizer.decode(generation.token_ids))

A seeded request gets the same tokens and log-probabilities whatever else runs.
"""

import asyncio
import queue
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Self

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from gymflow.contracts.model import ModelIdentity
from gymflow.models.embedded.chat import ChatTokenizer
from gymflow.models.embedded.checkpoint import Checkpoint, load_checkpoint
from gymflow.models.embedded.engine import ActiveRequest, Engine, Generation, GenerationRequest, check_request
from gymflow.models.embedded.transformer import Transformer
from gymflow.paths import data_dir

_Job = tuple[GenerationRequest, Future[Generation]]


class EmbeddedModel:
    """A loaded checkpoint and the thread that runs it. May be used from several event loops, at once or in turn."""

    def __init__(self, checkpoint: Checkpoint, tokenizer: ChatTokenizer, *, max_batch: int = 64) -> None:
        self.identity = ModelIdentity(provider="embedded", model="embedded", revision=checkpoint.revision)
        self.tokenizer = tokenizer
        self.context_tokens = checkpoint.config.max_position_embeddings
        self._max_batch = max_batch
        self._transformer = Transformer(checkpoint)
        self._inbox: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    @classmethod
    def load(cls, path: Path | None = None, *, max_batch: int = 64) -> Self:
        """Load a checkpoint folder, by default the model that the project ships; at most `max_batch` requests run at once."""
        path = path or data_dir() / "embedded"
        return cls(load_checkpoint(path), ChatTokenizer(path), max_batch=max_batch)

    async def generate(self, request: GenerationRequest) -> Generation:
        """Complete a prompt. Cancelling the caller frees the request's place in the batch.

        Raises `ContextOverflow` if the prompt fills the context, and `ValueError` for parameters that make no sense.
        """
        check_request(request, self._transformer.config)
        future: Future[Generation] = Future()
        self._inbox.put((request, future))
        self._ensure_thread()
        return await asyncio.wrap_future(future)

    async def close(self) -> None:
        """Cancel what is running and end the thread. The next `generate` starts a new one."""
        with self._starting:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._inbox.put(None)
            await asyncio.to_thread(thread.join)

    def _ensure_thread(self) -> None:
        with self._starting:
            if self._thread is None or not self._thread.is_alive():  # not alive in a forked child
                self._thread = threading.Thread(target=self._work, name="embedded-model", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        blas = ThreadpoolController()
        while (job := self._inbox.get()) is not None:
            # Products this small lose more than they win on several threads. The limit holds for the whole process, so it
            # is lifted whenever the batch is empty.
            with blas.limit(limits=1, user_api="blas"):
                if not self._run_until_idle(job):
                    return

    def _run_until_idle(self, job: _Job) -> bool:
        """Run a first job and all that arrive before the batch is empty; False if asked to end."""
        engine = Engine(self._transformer, max_batch=self._max_batch)
        futures: dict[ActiveRequest, Future[Generation]] = {}
        arrived: _Job | None = job
        try:
            while True:
                while arrived is not None:
                    request, future = arrived
                    futures[engine.submit(request)] = future
                    arrived = self._next_arrival()
                for active in [active for active, future in futures.items() if future.cancelled()]:
                    engine.cancel(active)
                    del futures[active]
                if engine.idle:
                    return True
                for active in engine.step():
                    future = futures.pop(active)
                    if future.set_running_or_notify_cancel():
                        future.set_result(active.result())
                arrived = self._next_arrival()
        except _Closed:
            for future in futures.values():
                future.cancel()
            return False
        except Exception as error:  # a fault in the engine reaches the callers, who would wait for ever otherwise
            for future in futures.values():
                if future.set_running_or_notify_cancel():
                    future.set_exception(error)
            return True

    def _next_arrival(self) -> _Job | None:
        """The next waiting job, or None; raises `_Closed` at the request to end."""
        try:
            job = self._inbox.get_nowait()
        except queue.Empty:
            return None
        if job is None:
            raise _Closed
        return job


class _Closed(Exception):
    """The owner called `close`."""
