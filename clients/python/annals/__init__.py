"""The client of Annals, a change history for platforms with many tenants.

- `Annals` and `AsyncAnnals`: the history, exports, the feed, custom entities, settings, webhooks.
- `Recorder`: records changes and events of your application.
- `context`: who makes the changes of a database, for `annals.sqlalchemy` and `annals.django`.
- `verify_webhook`: whether Annals sent a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from annals._async_client import AsyncAnnals
    from annals._client import Annals
    from annals._context import Context, context, current_context, set_context
    from annals._errors import ApiError
    from annals._json import JsonNumber
    from annals._pages import quoted
    from annals._recorder import AsyncRecorder, Recorder
    from annals._webhooks import Webhook, WebhookError, verify_webhook

__version__ = "0.1.0"
__all__ = [
    "Annals",
    "ApiError",
    "AsyncAnnals",
    "AsyncRecorder",
    "Context",
    "JsonNumber",
    "Recorder",
    "Webhook",
    "WebhookError",
    "context",
    "current_context",
    "quoted",
    "set_context",
    "verify_webhook",
]

_MODULES = {
    "Annals": "_client",
    "ApiError": "_errors",
    "AsyncAnnals": "_async_client",
    "AsyncRecorder": "_recorder",
    "Context": "_context",
    "JsonNumber": "_json",
    "Recorder": "_recorder",
    "Webhook": "_webhooks",
    "WebhookError": "_webhooks",
    "context": "_context",
    "current_context": "_context",
    "quoted": "_pages",
    "set_context": "_context",
    "verify_webhook": "_webhooks",
}


def __getattr__(name: str) -> Any:
    # Modules are loaded when they are needed, so that an import costs next to nothing.
    if name not in _MODULES:
        raise AttributeError(f"module 'annals' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"annals.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
