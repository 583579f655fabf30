"""Carries out the effects of steps with httpx, on an event loop."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from annals._drive import failures, headers_of
from annals._exchange import Answer, Ask, Effect, Send, Sleep, Steps

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")


class AsyncDriver:
    """Runs steps on the event loop of its caller, with connections for each loop."""

    def __init__(self, client: httpx.AsyncClient | None = None) -> None:
        self._given = client
        self._client: httpx.AsyncClient | None = None
        self._lock = asyncio.Lock()
        self._of: tuple[int, object] | None = None

    async def run(self, steps: Steps[T]) -> T:
        try:
            effect = next(steps)
            while True:
                try:
                    result = await self._carry_out(effect)
                except BaseException as error:
                    effect = steps.throw(error)
                else:
                    effect = steps.send(result)
        except StopIteration as end:
            value: T = end.value
            return value

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None and self._of == (os.getpid(), asyncio.get_running_loop()):
            await client.aclose()

    async def _carry_out(self, effect: Effect) -> Any:
        if isinstance(effect, Send):
            return await self._send(effect)
        if isinstance(effect, Sleep):
            return await asyncio.sleep(effect.seconds)
        if isinstance(effect, Ask):
            result = effect.function()
            return await result if inspect.isawaitable(result) else result
        self._of_this_loop()
        async with self._lock:
            return await self.run(effect.steps())

    async def _send(self, effect: Send) -> Answer:
        import httpx

        self._of_this_loop()
        client = self._given or self._client
        if client is None:
            client = self._client = httpx.AsyncClient()
        with failures(httpx, effect.timeout):
            async with asyncio.timeout(effect.timeout):
                request = client.build_request(
                    effect.method,
                    effect.url,
                    headers=dict(effect.headers),
                    content=effect.body,
                    timeout=effect.timeout,
                )
                response = await client.send(request, stream=True)
                headers = headers_of(response)
                if effect.streamed and response.is_success:
                    stream = _async_pieces(response, effect.timeout)
                    return Answer(response.status_code, headers, stream=stream)
                try:
                    body = await response.aread()
                finally:
                    await response.aclose()
                return Answer(response.status_code, headers, body)

    def _of_this_loop(self) -> None:
        """Connections and locks belong to a loop, and to a process."""
        of = (os.getpid(), asyncio.get_running_loop())
        if self._of != of:
            self._of, self._client, self._lock = of, None, asyncio.Lock()


@asynccontextmanager
async def _async_pieces(
    response: httpx.Response, timeout: float
) -> AsyncIterator[AsyncIterator[bytes]]:
    import httpx

    async def read() -> AsyncIterator[bytes]:
        with failures(httpx, timeout):
            async for piece in response.aiter_bytes():
                yield piece

    try:
        yield read()
    finally:
        await response.aclose()
