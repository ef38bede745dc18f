"""Train the embedded model and write its checkpoint into this folder.

    OMP_NUM_THREADS=1 python data/embedded/train.py [--steps N] [--out FOLDER]

Needs gymflow and, beyond its requirements, torch==2.13.0 and transformers==5.24.0 (CPU builds; about 20 minutes of one core).
The seed fixes every draw; another BLAS or processor may round differently and end with slightly different weights.
"""

import argparse
import json
import random
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

import conversations  # noqa: E402
from conversations import Conversation, tasks  # noqa: E402
from gymflow.models.embedded.chat import CALL_END, CALL_START, TURN_END, TURN_START, ChatTokenizer, render_chat  # noqa: E402

SEED = 20261129
VOCABULARY = 512
PADDING = "<|endoftext|>"
CONTEXT = 2048
BATCH_TOKENS = 3072
NO_LOSS = -100


class Example(NamedTuple):
    """Token ids of a conversation, and the same ids as labels where the assistant wrote them."""

    ids: list[int]
    labels: list[int]


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the embedded model.")
    parser.add_argument("--steps", type=int, default=1700)
    parser.add_argument("--out", type=Path, default=HERE)
    options = parser.parse_args()
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    write_tokenizer(options.out)
    tokenizer = ChatTokenizer(options.out)
    model = new_model(tokenizer)
    train(model, tokenizer, options.steps)
    # Stored in half the bytes: bfloat16 keeps the range, and the loss from rounding is below what sampling adds.
    model.to(torch.bfloat16).save_pretrained(options.out)


def write_tokenizer(out: Path) -> None:
    """Byte-level BPE whose digits stand alone, so that numbers line up; the call markers are single ordinary tokens."""
    rng = random.Random(SEED)
    corpus = [render_chat(*conversations.draw(rng)) for _ in range(4000)]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    markers = [CALL_START, CALL_END]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(markers),
        special_tokens=[PADDING, TURN_START, TURN_END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus, trainer)
    tokenizer.add_tokens([AddedToken(marker, special=False, normalized=False) for marker in markers])
    tokenizer.save(str(out / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": TURN_END,
        "pad_token": PADDING,
        "model_max_length": CONTEXT,
        "clean_up_tokenization_spaces": False,
    }
    (out / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    if out != HERE:
        shutil.copy(HERE / "chat_template.jinja", out)


def new_model(tokenizer: ChatTokenizer) -> LlamaForCausalLM:
    """A Llama of 0.6 million parameters."""
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=320,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        initializer_range=0.08,  # about 1 / sqrt(hidden_size); with the usual 0.02 copying takes ten times as long to learn
        bos_token_id=None,
        eos_token_id=tokenizer.stop_token_id,
        pad_token_id=0,
        attn_implementation="sdpa",
    )
    model = LlamaForCausalLM(config)
    model.generation_config.do_sample = True
    model.generation_config.temperature = 1.0
    return model


class Muon(torch.optim.Optimizer):
    """Momentum whose step for a matrix is made orthogonal (Newton-Schulz), so that all its directions learn alike.

    In float32 and over stacks of equal shape: torch's own computes in bfloat16, which takes longer than the model on most CPUs.
    """

    def __init__(self, matrices: Sequence[torch.nn.Parameter], lr: float, momentum: float = 0.95) -> None:
        super().__init__(matrices, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            shapes: dict[torch.Size, list[torch.nn.Parameter]] = {}
            for matrix in group["params"]:
                shapes.setdefault(matrix.shape, []).append(matrix)
            for (rows, columns), stack in shapes.items():
                velocities = [self.state[m].setdefault("velocity", torch.zeros_like(m)) for m in stack]
                for matrix, velocity in zip(stack, velocities, strict=True):
                    velocity.lerp_(matrix.grad, 1 - group["momentum"])
                nesterov = [m.grad.lerp(v, group["momentum"]) for m, v in zip(stack, velocities, strict=True)]
                scale = group["lr"] * max(1.0, rows / columns) ** 0.5
                for matrix, update in zip(stack, orthogonal(torch.stack(nesterov)), strict=True):
                    matrix.sub_(update, alpha=scale)


def orthogonal(stack: torch.Tensor, rounds: int = 5) -> torch.Tensor:
    """The nearest half-orthogonal matrices, roughly: singular values end between 0.7 and 1.2."""
    wide = stack.shape[-2] <= stack.shape[-1]
    x = stack if wide else stack.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(rounds):
        square = x @ x.mT
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x if wide else x.mT


def train(model: LlamaForCausalLM, tokenizer: ChatTokenizer, steps: int) -> None:
    """Next-token training on what the assistant says; progress goes to standard output."""
    # Muon for the matrices, AdamW for embeddings and norms: far more progress per step than AdamW alone.
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
    optimizers: list[torch.optim.Optimizer] = [
        Muon(matrices, lr=0.015),
        torch.optim.AdamW(others, lr=3e-3, betas=(0.9, 0.98), weight_decay=0.0),
    ]
    warm_up = 60
    schedules = [
        torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min(1.0, (step + 1) / warm_up) * max(0.0, 1 - step / steps)
        )
        for optimizer in optimizers
    ]
    held_out = {name: [example(c, tokenizer) for c in group] for name, group in held_out_conversations().items()}
    batches = draw_batches(tokenizer)
    started, seen, average = time.process_time(), 0, 0.0
    for step in range(1, steps + 1):
        ids, labels = next(batches)
        loss = model(input_ids=ids, labels=labels).loss
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer, schedule in zip(optimizers, schedules, strict=True):
            optimizer.step()
            schedule.step()
        seen += ids.numel()
        average = loss.item() if step == 1 else 0.98 * average + 0.02 * loss.item()
        if step % 250 == 0 or step == steps:
            greedy = {name: round(whole_answers_right(model, group), 2) for name, group in held_out.items()}
            record = {
                "step": step,
                "tokens": seen,
                "cpu_s": round(time.process_time() - started),
                "loss": round(average, 4),
            }
            print(json.dumps(record | greedy), flush=True)


def example(conversation: Conversation, tokenizer: ChatTokenizer) -> Example:
    """Encode turn by turn, exactly as the prompts and completions of a rollout are encoded."""
    messages, tools = conversation
    ids: list[int] = []
    labels: list[int] = []
    done = 0
    completion: list[int] = []
    for index, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        new = messages[done:index]
        prompt = (
            tokenizer.extend(ids[: len(ids) - len(completion)], completion, new)
            if ids
            else tokenizer.encode_chat(new, tools)
        )
        labels += [NO_LOSS] * (len(prompt) - len(ids))
        said = render_chat([message], add_generation_prompt=False)
        said = said.removeprefix(f"{TURN_START}assistant\n").removesuffix(f"{TURN_END}\n")
        completion = [*tokenizer.encode_text(said), tokenizer.stop_token_id]
        ids = prompt + completion
        labels += completion
        done = index + 1
    return Example(ids, labels)


def draw_batches(tokenizer: ChatTokenizer) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Batches of conversations of similar length, of about BATCH_TOKENS tokens."""
    rng = random.Random(SEED + 1)
    while True:
        examples = sorted((example(conversations.draw(rng), tokenizer) for _ in range(2048)), key=lambda e: len(e.ids))
        groups: list[list[Example]] = [[]]
        for drawn in examples:
            if (len(groups[-1]) + 1) * len(drawn.ids) > BATCH_TOKENS:
                groups.append([])
            groups[-1].append(drawn)
        rng.shuffle(groups)
        for group in groups:
            yield pad(group)


def pad(group: Sequence[Example]) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and labels as rectangles, filled up on the right."""
    longest = max(len(e.ids) for e in group)
    ids = torch.tensor([e.ids + [0] * (longest - len(e.ids)) for e in group])
    labels = torch.tensor([e.labels + [NO_LOSS] * (longest - len(e.labels)) for e in group])
    return ids, labels


def held_out_conversations() -> dict[str, list[Conversation]]:
    """Conversations about the test split, by difficulty, and with the calculator."""
    rng = random.Random(SEED + 2)
    groups: dict[str, list[Conversation]] = {}
    for op in tasks.OPERATIONS:
        for difficulty in ("medium", "hard") if op == "*" else ("easy", "medium"):
            for _ in range(64):
                problem = tasks.draw(rng, op, difficulty, held_out=True)
                asked: dict[str, Any] = {"role": "user", "content": tasks.question(problem, rng.randrange(24))}
                worked = [asked, {"role": "assistant", "content": tasks.solution(problem)}]
                groups.setdefault(f"{tasks.OPERATIONS[op][:3]}-{difficulty}", []).append(Conversation(worked, []))
                called = conversations.tool_conversation(problem, asked["content"])
                groups.setdefault(f"tool-{difficulty}", []).append(called)
    return groups


@torch.no_grad()
def whole_answers_right(model: LlamaForCausalLM, group: Sequence[Example]) -> float:
    """Share of conversations in which greedy decoding writes every assistant token as the reference does."""
    ids, labels = pad(group)
    guessed = model(input_ids=ids).logits[:, :-1].argmax(-1)
    wanted = labels[:, 1:]
    return ((guessed == wanted) | (wanted == NO_LOSS)).all(dim=1).float().mean().item()


if __name__ == "__main__":
    main()
