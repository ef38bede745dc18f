"""The two base models: what people write is checked strictly, what the store holds is versioned."""

from pydantic import BaseModel, ConfigDict

SCHEMA_VERSION = 1


class Contract(BaseModel):
    """Written by people or programs: an unknown field is an error, never ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="null")


class OpenContract(BaseModel):
    """Fields beyond the declared ones are kept as they came."""

    model_config = ConfigDict(extra="allow", frozen=True, ser_json_inf_nan="null")
