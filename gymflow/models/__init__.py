"""The model gateway: every model call of every rollout passes through here."""

from gymflow.models.base import ContextOverflow as ContextOverflow
from gymflow.models.base import FinishReason as FinishReason
from gymflow.models.base import Item as Item
from gymflow.models.base import ModelError as ModelError
from gymflow.models.base import ModelRequest as ModelRequest
from gymflow.models.base import ModelResponse as ModelResponse
from gymflow.models.base import Provider as Provider
from gymflow.models.base import TokenIds as TokenIds
from gymflow.models.client import ModelClient as ModelClient
from gymflow.models.gateway import Gateway as Gateway
from gymflow.models.health import EndpointDown as EndpointDown
from gymflow.models.spending import BudgetExhausted as BudgetExhausted
from gymflow.models.spending import Spending as Spending
