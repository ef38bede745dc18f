"""A small language model that runs in this process on numpy: no server, no GPU, no network.

`EmbeddedModel` completes token ids, `ChatTokenizer` turns a conversation into them, `parse_reply` reads the answer.
"""

from gymflow.models.embedded.chat import ChatTokenizer, ParsedReply, ToolCall, parse_reply, render_chat
from gymflow.models.embedded.checkpoint import CheckpointError
from gymflow.models.embedded.engine import ContextOverflow, Generation, GenerationRequest
from gymflow.models.embedded.model import EmbeddedModel

__all__ = [
    "ChatTokenizer",
    "CheckpointError",
    "ContextOverflow",
    "EmbeddedModel",
    "Generation",
    "GenerationRequest",
    "ParsedReply",
    "ToolCall",
    "parse_reply",
    "render_chat",
]
