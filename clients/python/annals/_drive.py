"""Carries out the effects of steps with httpx, and blocks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from annals import _forks
from annals._errors import ApiError
from annals._exchange import Answer, Ask, Effect, Send, Sleep, Steps

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")


class SyncDriver:
    """Runs steps and blocks. Thread-safe. A forked child opens its own connections."""

    def __init__(self, client: httpx.Client | None = None) -> None:
        self._given = client
        self._reset()
        _forks.after_fork(self)

    def _reset(self) -> None:
        self._client: httpx.Client | None = None
        self._lock = threading.RLock()

    def after_fork(self) -> None:
        # The parent's connections are the parent's: they are left open here, and not used.
        self._reset()

    def run(self, steps: Steps[T], sleep: Callable[[float], Any] = time.sleep) -> T:
        """Runs steps to their end. `sleep` may raise, to end the waiting."""
        try:
            effect = next(steps)
            while True:
                try:
                    result = self._carry_out(effect, sleep)
                except BaseException as error:
                    effect = steps.throw(error)
                else:
                    effect = steps.send(result)
        except StopIteration as end:
            value: T = end.value
            return value

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _carry_out(self, effect: Effect, sleep: Callable[[float], Any]) -> Any:
        if isinstance(effect, Send):
            return self._send(effect)
        if isinstance(effect, Sleep):
            return sleep(effect.seconds)
        if isinstance(effect, Ask):
            return effect.function()
        with self._lock:
            return self.run(effect.steps(), sleep)

    def _send(self, effect: Send) -> Answer:
        import httpx

        client = self._opened(httpx)
        with failures(httpx, effect.timeout):
            request = client.build_request(
                effect.method,
                effect.url,
                headers=dict(effect.headers),
                content=effect.body,
                timeout=effect.timeout,
            )
            response = client.send(request, stream=True)
            headers = headers_of(response)
            if effect.streamed and response.is_success:
                return Answer(
                    response.status_code, headers, stream=_pieces(response, effect.timeout)
                )
            try:
                until = time.monotonic() + effect.timeout
                body = bytearray()
                for piece in response.iter_bytes():
                    body += piece
                    if time.monotonic() > until:
                        raise httpx.ReadTimeout("slow", request=request)
            finally:
                response.close()
            return Answer(response.status_code, headers, bytes(body))

    def _opened(self, httpx: Any) -> httpx.Client:
        client = self._given or self._client
        if client is not None:
            return client
        with self._lock:
            if self._client is None:
                self._client = httpx.Client()
            return self._client


@contextmanager
def _pieces(response: httpx.Response, timeout: float) -> Iterator[Iterator[bytes]]:
    import httpx

    def read() -> Iterator[bytes]:
        with failures(httpx, timeout):
            yield from response.iter_bytes()

    try:
        yield read()
    finally:
        response.close()


def headers_of(response: httpx.Response) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


@contextmanager
def failures(httpx: Any, timeout: float) -> Iterator[None]:
    """Makes an ApiError of what fails on the way."""
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
        raise ApiError("connection_failed", _failed(error), unsent=True) from error
    except (httpx.TimeoutException, TimeoutError) as error:
        raise ApiError("timeout", f"The service did not answer within {timeout} s.") from error
    except httpx.RequestError as error:
        raise ApiError("connection_failed", _failed(error)) from error


def _failed(error: Exception) -> str:
    return f"The connection to the service failed: {error or type(error).__name__}"
