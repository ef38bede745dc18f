"""How fast the embedded model answers: `OPENBLAS_NUM_THREADS=1 python tests/perf/bench_embedded.py`.

Prints tokens per second at several batch sizes, prompts included in the time but not in the tokens.
"""

import time

from gymflow.models.embedded.chat import ChatTokenizer
from gymflow.models.embedded.checkpoint import load_checkpoint
from gymflow.models.embedded.engine import Engine, GenerationRequest
from gymflow.models.embedded.transformer import Transformer
from gymflow.paths import data_dir

NEW_TOKENS = 40


def main() -> None:
    path = data_dir() / "embedded"
    started = time.perf_counter()
    transformer = Transformer(load_checkpoint(path))
    prompt = ChatTokenizer(path).encode_chat([{"role": "user", "content": "What is 123 + 456?"}])
    print(
        f"load: {1000 * (time.perf_counter() - started):.0f} ms; prompt of {len(prompt)} tokens, {NEW_TOKENS} new ones"
    )
    for batch in (1, 16, 32, 64):
        engine = Engine(transformer, max_batch=batch)
        requests = 4 * batch if batch > 1 else 16
        for seed in range(requests):
            engine.submit(GenerationRequest(prompt, max_tokens=NEW_TOKENS, seed=seed))
        started = time.perf_counter()
        while not engine.idle:
            engine.step()
        print(f"batch {batch:3}: {requests * NEW_TOKENS / (time.perf_counter() - started):7.0f} tokens/s")


if __name__ == "__main__":
    main()
