"""Keys in Prefect's Secret blocks, without a server; with one see tests/flows/test_server.py."""

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from gymflow.contracts.model import ModelSpec
from gymflow.errors import InputError
from gymflow.models import Gateway
from gymflow.secrets import Redactor, resolve_key
from tasks import step

pytestmark = pytest.mark.usefixtures("no_prefect_server")


@pytest.fixture
def no_prefect_server(home):
    """Whatever server an earlier test of this process has used is in Prefect's settings context still."""
    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        yield


def test_a_block_without_a_server_is_the_users_to_mend(home):
    assert step is not None  # steps are what makes the kind of reference known
    with pytest.raises(InputError, match=r"model 'm', api_key \(\$\{prefect:key\}\): .*needs a Prefect server"):
        resolve_key("${prefect:key}", "model 'm', api_key")


async def test_a_model_with_such_a_key_does_not_start(home):
    spec = ModelSpec(model="m", base_url="http://127.0.0.1:9/v1", api_key="${prefect:key}")
    with pytest.raises(InputError, match="needs a Prefect server"):
        await Gateway({"policy": spec}).preflight()


def test_redaction_knows_what_blocks_hold(monkeypatch):
    monkeypatch.setattr("gymflow.secrets.RESOLVERS", {"prefect": lambda name: f"value-of-{name}"})
    redactor = Redactor.of(ModelSpec(model="m", api_key="${prefect:key}"))
    assert redactor.text("it said value-of-key") == "it said ***"
