"""What a call does, without doing it: steps that yield effects, which a driver carries out.

One text serves `Annals` and `AsyncAnnals`: a driver runs the steps, and awaits or blocks.
"""

from __future__ import annotations

import random
import time
import urllib.parse
import uuid
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeVar, Union

from annals import _json
from annals._errors import ApiError, error_of_answer

T = TypeVar("T")

#: Seconds between attempts: the first, and the longest.
FIRST_DELAY = 0.25
MAX_DELAY = 8.0


@dataclass(frozen=True, slots=True)
class Request:
    """A request of an operation. `path` follows the base URL, with its parts encoded."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str | None] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    #: `always`: a repeat does no harm. `refused`: only where the service certainly did nothing.
    repeat: Literal["always", "refused"] | None = None
    timeout: float | None = None
    max_retries: int | None = None
    anonymous: bool = False
    #: The body is handed over as it comes; the timeout then holds for each silence.
    streamed: bool = False
    #: Whether an answer that is no success is a result of the operation nevertheless.
    is_result: Callable[[int, bytes], bool] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: its whole body, or `stream`, the driver's iterator over it."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    stream: Any = None

    def json(self) -> Any:
        return read_json(self.body)


@dataclass(frozen=True, slots=True)
class Send:
    """Effect: send this once. The driver raises ApiError where no answer comes."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    timeout: float
    streamed: bool


@dataclass(frozen=True, slots=True)
class Sleep:
    """Effect: wait so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Exclusive:
    """Effect: run these steps while no other thread or task runs such steps."""

    steps: Callable[[], "Steps[Any]"]


@dataclass(frozen=True, slots=True)
class Ask:
    """Effect: call the application, and await what it returns if that can be awaited."""

    function: Callable[[], Any]


Effect = Union[Send, Sleep, Exclusive, Ask]
Steps = Generator[Effect, Any, T]


class ClientTokens:
    """The access token of an OAuth client: fetched once for all calls that wait, and renewed when a
    tenth of its life is left, or a minute where that is less."""

    def __init__(self, exchange: Exchange, client_id: str, client_secret: str, scope: str | None):
        self._exchange = exchange
        self._form = {
            "grant_type": "client_credentials",
            "client_id": client_id,
            "client_secret": client_secret,
            **({} if scope is None else {"scope": scope}),
        }
        self._text: str | None = None
        self._renew_at = 0.0
        self._expires_at = 0.0

    def get(self) -> Steps[str]:
        if self._text is not None and time.monotonic() < self._renew_at:
            return self._text
        text: str = yield Exclusive(self._renew)
        return text

    def forget(self, text: str) -> bool:
        """The service refused this token. A newer one stays."""
        if self._text == text:
            self._text = None
        return True

    def _renew(self) -> Steps[str]:
        if self._text is not None and time.monotonic() < self._renew_at:
            return self._text
        request = Request(
            "POST",
            "/oauth/token",
            body=urllib.parse.urlencode(self._form).encode(),
            content_type="application/x-www-form-urlencoded",
            repeat="always",
            anonymous=True,
        )
        sent_at = time.monotonic()
        try:
            answer = (yield from self._exchange.send(request)).json()
            text, life = answer["access_token"], float(answer["expires_in"])
        except ApiError:
            # While a renewal fails, the old token serves until it ends.
            if self._text is not None and time.monotonic() < self._expires_at:
                return self._text
            raise
        except (KeyError, TypeError, ValueError):
            raise ApiError(
                "invalid_answer", "The token endpoint answered without an access token."
            ) from None
        self._text = text
        self._expires_at = sent_at + life
        self._renew_at = self._expires_at - min(60.0, life / 10)
        return text


class GivenTokens:
    """Tokens that the application fetches and renews."""

    def __init__(self, token: str | Callable[[], Any]):
        self.function = token

    def get(self) -> Steps[str]:
        if isinstance(self.function, str):
            return self.function
        text: str = yield Ask(self.function)
        return text

    def forget(self, text: str) -> bool:
        return False


@dataclass(slots=True)
class Exchange:
    """Sends requests with an access token, and repeats them where that is safe."""

    base_url: str
    timeout: float
    max_retries: int
    #: Seconds. A longer `Retry-After` is not waited for.
    max_retry_delay: float
    tokens: Any = None

    def send(self, request: Request) -> Steps[Answer]:
        """Raises ApiError where the answer is no success."""
        repeat = request.repeat or ("refused" if request.method in ("POST", "PATCH") else "always")
        retries = self.max_retries if request.max_retries is None else request.max_retries
        request_id = str(uuid.uuid4())
        attempt = 0
        may_renew = not request.anonymous
        while True:
            attempt += 1
            token: str | None = None
            if not request.anonymous:
                token = yield from self.tokens.get()
            try:
                return (yield from self._attempt(request, token, request_id, attempt))
            except ApiError as error:
                if may_renew and error.status == 401 and token and self.tokens.forget(token):
                    may_renew = False
                    attempt -= 1
                    continue
                if attempt > retries or not _may_repeat(error, repeat):
                    raise
                if (error.retry_after or 0) > self.max_retry_delay:
                    raise
                delay = back_off(attempt, error.retry_after)
            yield Sleep(delay)

    def _attempt(
        self, request: Request, token: str | None, request_id: str, attempt: int
    ) -> Steps[Answer]:
        headers = {"accept": "application/json", "x-request-id": request_id}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        if request.body is not None:
            headers["content-type"] = request.content_type
        headers.update({name: one for name, one in request.headers.items() if one is not None})
        url = self.base_url + request.path + _search(request.query)
        timeout = self.timeout if request.timeout is None else request.timeout
        try:
            answer: Answer = yield Send(
                request.method, url, headers, request.body, timeout, request.streamed
            )
        except ApiError as error:
            error.request_id, error.attempts = request_id, attempt
            raise
        if 200 <= answer.status < 300 or (
            request.is_result is not None and request.is_result(answer.status, answer.body)
        ):
            return answer
        raise error_of_answer(
            answer.status, answer.headers, answer.body, request_id=request_id, attempts=attempt
        )


def back_off(attempt: int, retry_after: float | None) -> float:
    """The seconds before the next attempt. `attempt` counts from 1. A `Retry-After` is a lower
    bound; chance spreads the callers, so that they do not come back all at once."""
    growth = FIRST_DELAY * 2 ** min(attempt, 10)
    if retry_after is not None:
        return retry_after + random.random() * min(growth, 1.0)
    return min(growth / 2, MAX_DELAY) * (0.5 + random.random() / 2)


def _may_repeat(error: ApiError, repeat: str) -> bool:
    if error.status == 429:
        return True
    if error.status in (502, 503):
        return repeat == "always"
    return error.type == "connection_failed" and (repeat == "always" or error.unsent)


def read_json(text: str | bytes) -> Any:
    """Raises ApiError for text that is not JSON: never an empty success."""
    try:
        return _json.parse(text)
    except (ValueError, RecursionError) as error:
        raise ApiError("invalid_answer", f"The service's answer cannot be read: {error}") from error


def json_body(value: Any) -> bytes:
    return _json.write(value).encode()


def path(*parts: str) -> str:
    """The path of these parts, each encoded: `path("changelog", tenant, "feed")`."""
    return "".join(f"/{urllib.parse.quote(part, safe='')}" for part in parts)


def _search(query: Mapping[str, Any]) -> str:
    given = {name: _parameter(one) for name, one in query.items() if one is not None}
    return f"?{urllib.parse.urlencode(given)}" if given else ""


def _parameter(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _json.timestamp(value) if isinstance(value, datetime) else str(value)
