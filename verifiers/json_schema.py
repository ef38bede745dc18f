"""A JSON answer that must satisfy a schema, and may have to hold given values.

>>> document('Here it is:\\n```json\\n{"a": 1}\\n```', "fenced")
'{"a": 1}'
"""

import json
import re
from itertools import islice
from typing import Annotated, Any, Literal

from gymflow.verifiers._compare import Rules, differences
from gymflow.verifiers._json import parse
from gymflow.verifiers._schemas import check, faults, has_patterns
from gymflow.verifiers._workers import WorkerPool
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from gymflow.verifiers import BaseParameters, Evidence, Verdict, Verifier, VerifierError

Extraction = Literal["whole", "fenced", "anywhere"]

VALIDATION_TIMEOUT_S = 5.0
MAX_CANDIDATES = 50
"""Opening brackets that are tried for a value in the midst of prose."""

_FENCE = re.compile(r"^[ \t]*```[ \t]*(?:json[c5]?|JSON)?[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL | re.MULTILINE)


def _read_schema(value: Any) -> Any:
    return parse(value, unique_keys=True) if isinstance(value, str) else value


def _checked(schema: Any) -> Any:
    check(schema)
    return schema


class JsonSchemaTask(BaseModel):
    """`schema` is a JSON Schema or its JSON text; `expected_values` is a part of the answer that must be there."""

    model_config = ConfigDict(populate_by_name=True)

    json_schema: Annotated[Any, BeforeValidator(_read_schema), AfterValidator(_checked)] = Field(alias="schema")
    schema_type: Literal["json"] = "json"
    expected_values: dict[str, Any] | list[Any] | None = None


class JsonSchema(Verifier[JsonSchemaTask]):
    """Reward 1.0 when the answer is JSON, satisfies the schema and holds the expected values, else 0.0.

    Doubled keys, NaN and infinities are no JSON. The formats email, ipv4, ipv6, date, time, date-time, uri and uuid are checked.
    """

    extracts = True
    includes = ("_assignment.py", "_compare.py", "_json.py", "_schemas.py", "_worker_main.py", "_workers.py")
    distributions = ("jsonschema",)

    class Parameters(BaseParameters):
        """`whole`: the message is JSON. `fenced`: or its last code block is. `anywhere`: or the first value in its prose."""

        extraction: Extraction = "fenced"

    def __init__(self, parameters: BaseModel | None = None) -> None:
        super().__init__(parameters)
        self._workers = WorkerPool("gymflow.verifiers._schemas:faults", deadline_s=VALIDATION_TIMEOUT_S, size=1)

    def lenient(self) -> BaseModel | None:
        """JSON in the midst of prose."""
        if self.parameters.extraction == "anywhere":
            return None
        lenient: BaseModel = self.parameters.model_copy(update={"extraction": "anywhere"})
        return lenient

    async def close(self) -> None:
        """End the process that runs schemas with patterns."""
        await self._workers.close()

    async def verify(self, task: JsonSchemaTask, evidence: Evidence) -> Verdict:
        """Raises VerifierError for a schema that never ends, VerifierTimeout for a pattern that does not."""
        text = document(evidence.final_text, self.parameters.extraction)
        try:
            value = parse(text, unique_keys=True)
        except ValueError as error:
            return Verdict(
                reward=0.0, components=_components(), reason=str(error) if text else "the final message is empty"
            )
        invalid = await self._faults(task.json_schema, value)
        if invalid:
            return Verdict(reward=0.0, components=_components(1), extracted_answer=text, reason="; ".join(invalid[:2]))
        wrong = (
            [] if task.expected_values is None else list(differences(task.expected_values, value, Rules(subset=True)))
        )
        return Verdict(
            reward=float(not wrong),
            components=_components(1, 1, float(not wrong)),
            extracted_answer=text,
            reason="; ".join(map(str, wrong[:3])) or None,
        )

    async def _faults(self, schema: Any, value: Any) -> list[str]:
        job = {"schema": schema, "instance": value}
        if has_patterns(schema):
            return list(await self._workers.call(job))
        try:
            return list(faults(job))
        except RecursionError:
            raise VerifierError("the schema or the answer is nested too deeply to validate") from None


def document(text: str, extraction: Extraction) -> str:
    """The part of the text that should be JSON."""
    text = text.strip()
    if extraction == "whole" or text[:1] in ("{", "["):
        return text
    blocks = _FENCE.findall(text)
    if blocks:
        return str(blocks[-1]).strip()
    return _first_value(text) if extraction == "anywhere" else text


def _first_value(text: str) -> str:
    decoder = json.JSONDecoder()
    for opening in islice(re.finditer(r"[{\[]", text), MAX_CANDIDATES):
        try:
            _, end = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            continue
        return text[opening.start() : end]
    return text


def _components(parses: float = 0, valid: float = 0, values: float = 0) -> dict[str, float]:
    return {"parses": float(parses), "valid": float(valid), "values": float(values)}
