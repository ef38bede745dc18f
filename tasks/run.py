"""Run: play the rollouts that the store lacks, chunk by chunk, over slots that all chunks share."""

import asyncio

from pydantic import BaseModel

from gymflow import keys
from gymflow.runtime.active import ActiveRun, active_run
from tasks import chunk_keys, step


class Chunk(BaseModel):
    """A chunk of a run's plan, as a step's input: small, and equal whenever the same rollouts are meant."""

    run_id: str
    number: int
    rollouts: int
    digest: str


class ChunkResult(BaseModel):
    """What a chunk's step leaves in Prefect: counts and a digest, no path and no rollout."""

    rollouts: int
    digest: str


@step(cache_policy=chunk_keys, task_run_name="chunk {chunk.number}")
async def run_chunk(chunk: Chunk) -> ChunkResult:
    """Play what is pending of one chunk. Returns when every rollout of it is durable."""
    run = active_run(chunk.run_id)
    await run.run_chunk(chunk.number)
    return ChunkResult(rollouts=chunk.rollouts, digest=chunk.digest)


@step(task_run_name="verify {run_id}")
async def verify(run_id: str) -> int:
    """Score the rollouts that were sampled under an earlier verifier; returns how many."""
    return await active_run(run_id).complete_verdicts()


async def run_chunks(run: ActiveRun) -> None:
    """All chunks, enough of them at once to keep every slot busy. "Cached" means that the store holds the whole chunk."""
    window = asyncio.Semaphore(run.chunk_window)

    async def one(number: int) -> None:
        async with window:
            if run.stopping:
                return
            rollout_keys = run.plan.chunk_keys(number)
            chunk = Chunk(
                run_id=run.run_id,
                number=number,
                rollouts=len(rollout_keys),
                digest=chunk_digest(run, rollout_keys),
            )
            await run_chunk.refreshed(run.pending(number))(chunk)

    chunks = [asyncio.create_task(one(number)) for number in run.plan.chunks()]
    try:
        await asyncio.gather(*chunks)
    finally:
        for chunk in chunks:
            chunk.cancel()


def chunk_digest(run: ActiveRun, rollout_keys: list[str]) -> str:
    """Key of a chunk's result: reuse scope, rollout keys in order, and the protocol that they were sampled under."""
    scope = run.run_id if run.document.config.reuse == "run" else run.document.config.reuse
    return keys.digest([scope, keys.SAMPLING_PROTOCOL, sorted(rollout_keys)])
