"""Run configurations for tests."""

from typing import Any

from gymflow.contracts.run import RunConfig

RULES = [{"text": "The answer is (A)."}]


def scripted(**fields: Any) -> RunConfig:
    """A run of the first mcqa tasks by an agent that always says A, unless other rules are given."""
    rules = fields.pop("rules", RULES)
    defaults = {
        "environments": [{"name": "mcqa", "limit": 4}],
        "models": {"policy": {"provider": "scripted", "parameters": {"rules": rules}, "max_retries": 0}},
    }
    return RunConfig.model_validate(defaults | fields)
