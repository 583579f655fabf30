"""Annals in Django: the app `annals.django`, and the middleware `annals.django.ContextMiddleware`.

The setting `ANNALS` is a dict, every member optional:

- `resolve`: the path of a function that takes a request and returns who it is: a dict with `actor`,
  `actor_id`, `on_behalf_of`, `correlation_id` and `context`, or None. Default: the signed-in user.
- `trust_correlation`: True takes the correlation id from the trace id of the request's
  `traceparent`, else from its `x-request-id`. Default: a new UUID for each request.
- `address`, `user_agent`: True adds `ip` and `userAgent` to the context.
- `autocommit`: False leaves changes outside of `atomic` unattributed, and saves two round trips.
- `capture`: False attributes for triggers (`annals outbox`) alone, and not for `annals capture`.
- `server`: the arguments of `annals.Annals`, for the *History* page of Django's admin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from annals.django._middleware import ContextMiddleware

__all__ = ["ContextMiddleware"]


def __getattr__(name: str) -> Any:
    if name != "ContextMiddleware":
        raise AttributeError(f"module 'annals.django' has no attribute {name!r}")
    from annals.django._middleware import ContextMiddleware

    return ContextMiddleware
