"""Who makes the changes of a request."""

from __future__ import annotations

import asyncio
import inspect
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.utils.module_loading import import_string

from annals._context import context, without_context
from annals._warnings import warn_once
from annals.django._settings import setting

#: Seconds that a request waits for an asynchronous `resolve`.
MAX_WAIT = 0.25
#: Characters of the header that are recorded.
MAX_USER_AGENT = 500

#: W3C Trace Context; neither id is all zeros.
_TRACE = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?"
)


def user_of(request: HttpRequest) -> Mapping[str, Any] | None:
    """The signed-in user: the full name, or else the user name, and the id."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return None
    return {"actor": user.get_full_name() or user.get_username(), "actor_id": str(user.pk)}


async def _async_user_of(request: HttpRequest) -> Mapping[str, Any] | None:
    from asgiref.sync import sync_to_async

    return await sync_to_async(user_of)(request)


class ContextMiddleware:
    """Opens a context for each request, with what the setting's `resolve` says of it. It stands
    after what signs in, such as `AuthenticationMiddleware`."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        name = setting("resolve")
        self._resolve: Callable[[HttpRequest], Any] = (
            user_of if name is None else import_string(name)
        )
        self._trusts = bool(setting("trust_correlation", False))
        self._has_address = bool(setting("address", False))
        self._has_user_agent = bool(setting("user_agent", False))
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)
            if name is None:
                self._resolve = _async_user_of

    def __call__(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        if self._is_async:
            return self._respond(request)
        who: Any = None
        try:
            with without_context():
                who = self._resolve(request)
            if inspect.iscoroutine(who):
                who.close()
                raise TypeError("an asynchronous resolve needs ASGI")
        except Exception as error:
            _failed(error)
            who = None
        with self._context(request, who):
            response: HttpResponse = self.get_response(request)
            return response

    async def _respond(self, request: HttpRequest) -> HttpResponse:
        who: Any = None
        try:
            with without_context():
                who = self._resolve(request)
                if inspect.isawaitable(who):
                    who = await asyncio.wait_for(who, MAX_WAIT)
        except Exception as error:
            _failed(error)
            who = None
        with self._context(request, who):
            response: HttpResponse = await self.get_response(request)
            return response

    def _context(self, request: HttpRequest, who: Any) -> context:
        correlation = self._correlation(request)
        try:
            given: dict[str, Any] = {"correlation_id": correlation, **dict(who or {})}
            circumstances = {**self._circumstances(request), **dict(given.get("context") or {})}
            given["context"] = circumstances or None
            return context(**given)
        except Exception as error:
            _failed(error)
            return context(correlation_id=correlation)

    def _correlation(self, request: HttpRequest) -> str:
        if self._trusts:
            trace = _TRACE.fullmatch(request.headers.get("traceparent", ""))
            if trace is not None:
                return trace[1]
            text = request.headers.get("x-request-id", "")
            if re.fullmatch(r"[!-~]{1,200}", text):
                return str(text)
        return str(uuid.uuid4())

    def _circumstances(self, request: HttpRequest) -> dict[str, str]:
        address = request.META.get("REMOTE_ADDR") if self._has_address else None
        agent = request.headers.get("user-agent") if self._has_user_agent else None
        return {
            **({"ip": address} if address else {}),
            **({"userAgent": agent[:MAX_USER_AGENT]} if agent else {}),
        }


def _failed(error: Exception) -> None:
    """The application goes on without an actor."""
    warn_once(
        "resolve",
        f"resolve of ANNALS failed ({type(error).__name__}): changes have no actor.",
    )
