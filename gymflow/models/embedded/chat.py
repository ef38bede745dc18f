"""Chat messages to token ids and back: ChatML turns with Hermes tool calls.

`ChatTokenizer` writes what `chat_template.jinja` writes, with one difference: only the template's own markers become special
tokens. A user who types `<|im_end|>` gets those characters, not the end of the turn.

Messages and tools have the shape of OpenAI's Chat Completions API.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from gymflow.models.embedded.checkpoint import CheckpointError

TURN_START = "<|im_start|>"
TURN_END = "<|im_end|>"
CALL_START = "<tool_call>"
CALL_END = "</tool_call>"

# A call that the token limit cut off before its end marker is still a call if its JSON is whole.
_CALL = re.compile(f"{CALL_START}(.*?){CALL_END}|{CALL_START}(.*)", re.DOTALL)

Message = Mapping[str, Any]
Tool = Mapping[str, Any]


@dataclass(frozen=True)
class ToolCall:
    """One call as the model wrote it; `arguments` is JSON text."""

    name: str
    arguments: str


@dataclass(frozen=True)
class ParsedReply:
    """What the model said, and what it asked to be called."""

    content: str
    tool_calls: tuple[ToolCall, ...] = field(default=())


class ChatTokenizer:
    """Encodes conversations, decodes completions, and extends a conversation without tokenising its past again."""

    def __init__(self, path: Path) -> None:
        """Load `tokenizer.json` from a checkpoint folder."""
        self._tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
        # Text is never scanned for special tokens; they are put in by id.
        self._tokenizer.encode_special_tokens = True
        self._marker_ids: dict[str, int] = {}
        for marker in (TURN_START, TURN_END):
            marker_id = self._tokenizer.token_to_id(marker)
            if marker_id is None:
                raise CheckpointError(f"{path}/tokenizer.json has no token {marker}")
            self._marker_ids[marker] = marker_id
        self.stop_token_id = self._marker_ids[TURN_END]

    def encode_text(self, text: str) -> list[int]:
        """Token ids of plain text. Unpaired surrogates, which UTF-8 cannot carry, become U+FFFD."""
        clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return self._tokenizer.encode(clean, add_special_tokens=False).ids

    def encode_chat(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), *, add_generation_prompt: bool = True
    ) -> list[int]:
        """Token ids of a conversation, by default up to where the assistant begins to write."""
        return self._encode(_chat_pieces(messages, tools, add_generation_prompt))

    def extend(
        self, prompt_token_ids: Sequence[int], completion_token_ids: Sequence[int], messages: Iterable[Message]
    ) -> list[int]:
        """The next prompt: everything the model saw and wrote, id by id, then the newly tokenised `messages`.

        The result begins with prompt and completion as they were. Tokenising the conversation again may split the model's own
        text differently, and the log-probabilities would belong to other tokens. A completion that was cut off by its token
        limit is closed first.
        """
        ids = [*prompt_token_ids, *completion_token_ids]
        if not completion_token_ids or completion_token_ids[-1] != self.stop_token_id:
            ids.append(self.stop_token_id)
        pieces = ["\n"]
        for message in messages:
            pieces += _turn(message)
        return ids + self._encode(pieces + _GENERATION_PROMPT)

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of a completion, without its closing marker."""
        if token_ids and token_ids[-1] == self.stop_token_id:
            token_ids = token_ids[:-1]
        return self._tokenizer.decode(list(token_ids), skip_special_tokens=False)

    def _encode(self, pieces: Iterable[str]) -> list[int]:
        ids: list[int] = []
        text: list[str] = []
        for piece in pieces:
            marker_id = self._marker_ids.get(piece) if isinstance(piece, _Marker) else None
            if marker_id is None:
                text.append(piece)
                continue
            ids += self.encode_text("".join(text))
            ids.append(marker_id)
            text.clear()
        return ids + self.encode_text("".join(text))


def render_chat(messages: Sequence[Message], tools: Sequence[Tool] = (), *, add_generation_prompt: bool = True) -> str:
    """A conversation as text, equal to what `chat_template.jinja` renders."""
    return "".join(_chat_pieces(messages, tools, add_generation_prompt))


def parse_reply(text: str) -> ParsedReply:
    """Split a completion into content and tool calls, as vLLM's `hermes` parser does.

    Content is what stands before the first call. If any call is not JSON with a name and arguments, there are no calls and the
    whole text is content.
    """
    start = text.find(CALL_START)
    if start < 0:
        return ParsedReply(text)
    try:
        calls = tuple(_call(closed or unclosed) for closed, unclosed in _CALL.findall(text))
    except (ValueError, TypeError, KeyError, RecursionError):
        return ParsedReply(text)
    return ParsedReply(text[:start], calls)


def _call(text: str) -> ToolCall:
    call = json.loads(text)
    if not isinstance(call["name"], str):
        raise TypeError("a tool's name is a string")
    return ToolCall(call["name"], json.dumps(call["arguments"], ensure_ascii=False))


class _Marker(str):
    """A piece of the template that stands for a special token; text of the same spelling does not."""

    __slots__ = ()


_START, _END = _Marker(TURN_START), _Marker(TURN_END)
_GENERATION_PROMPT = [_START, "assistant\n"]


def _chat_pieces(messages: Sequence[Message], tools: Sequence[Tool], add_generation_prompt: bool) -> list[str]:
    pieces = _tool_turn(messages, tools)
    for message in messages[1:] if tools and messages and _role(messages[0]) == "system" else messages:
        pieces += _turn(message)
    return pieces + _GENERATION_PROMPT if add_generation_prompt else pieces


def _tool_turn(messages: Sequence[Message], tools: Sequence[Tool]) -> list[str]:
    """The turn that lists the tools; a leading system message opens it."""
    if not tools:
        return []
    leading = f"{_text(messages[0])}\n" if messages and _role(messages[0]) == "system" else ""
    signatures = (
        f" {tool['function']['name']}({','.join(tool['function']['parameters']['properties'])})" for tool in tools
    )
    return [_START, f"system\n{leading}Tools:{''.join(signatures)}", _END, "\n"]


def _turn(message: Message) -> list[str]:
    parts = [_text(message)] if _text(message) else []
    for call in message.get("tool_calls") or ():
        arguments = call["function"]["arguments"]
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        parts.append(f'{CALL_START}\n{{"name": "{call["function"]["name"]}", "arguments": {arguments}}}\n{CALL_END}')
    return [_START, f"{_role(message)}\n" + "\n".join(parts), _END, "\n"]


def _role(message: Message) -> str:
    return "system" if message["role"] == "developer" else message["role"]


def _text(message: Message) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    if any(part["type"] != "text" for part in content):
        raise ValueError("the embedded model reads text only")
    return "".join(part["text"] for part in content)
