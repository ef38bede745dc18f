"""A recipe as a snapshot, which Daytona builds itself."""

from daytona import CreateSnapshotParams, DaytonaConflictError, DaytonaError, Image

from gymflow.sandboxes.daytona import failures
from gymflow.sandboxes.daytona.provider import DaytonaProvider
from gymflow.sandboxes.errors import SandboxUnavailable
from gymflow.sandboxes.images import BUILD_S, Recipe
from gymflow.sandboxes.interface import Provider


async def build(recipe: Recipe, provider: Provider) -> str:
    """Make a snapshot with the recipe's name in a `daytona` provider's account; its id. Raises SandboxUnavailable."""
    assert isinstance(provider, DaytonaProvider)
    base, *rest = recipe.dockerfile()
    image = Image.base(base.removeprefix("FROM ")).dockerfile_commands(rest)
    try:
        made = await provider.client().snapshot.create(
            CreateSnapshotParams(name=recipe.name, image=image), timeout=BUILD_S
        )
    except DaytonaConflictError as error:
        raise SandboxUnavailable(
            f"there is a snapshot {recipe.name!r} in this account: delete it, or give the recipe another name",
            cause=error,
        ) from error
    except DaytonaError as error:
        raise failures.of_call(error, "make a snapshot") from error
    return str(made.id)
