"""Secrets that Prefect keeps: `${prefect:NAME}` in a configuration is the value of the Secret block of that name.

The engine resolves references of a configuration; this kind is known to it once the steps are imported, and Prefect is asked
only where one occurs.
"""

from gymflow.errors import InputError
from gymflow.secrets import RESOLVERS

BLOCK_TYPE = "secret"


def secret_block(name: str) -> str:
    """The block's value. Raises InputError where there is no such block, or no server to ask for it."""
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound
    from prefect.settings import get_current_settings

    if get_current_settings().api.url is None:
        raise InputError("a Secret block needs a Prefect server: PREFECT_API_URL, a profile, or `gym up`; not --inline")
    try:
        with get_client(sync_client=True) as client:
            document = client.read_block_document_by_name(name, BLOCK_TYPE, include_secrets=True)
    except ObjectNotFound as error:
        raise InputError(f"the Prefect server has no Secret block {name!r}") from error
    except Exception as error:
        raise InputError(f"the Prefect server could not be asked for it: {type(error).__name__}: {error}") from error
    value = document.data.get("value")
    if not isinstance(value, str) or not value:
        raise InputError(f"the Secret block {name!r} holds no text")
    return value


RESOLVERS["prefect"] = secret_block
