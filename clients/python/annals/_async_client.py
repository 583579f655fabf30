"""The client of the service for asyncio."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Union, Unpack

from annals._async_drive import AsyncDriver
from annals._client import Token, core_of
from annals._recorder import AsyncRecorder, RecorderOptions
from annals._resources import (
    AsyncConfigurations,
    AsyncCustomEntities,
    AsyncHistory,
    AsyncInstances,
    AsyncJobs,
    AsyncSubscriptions,
    AsyncViewerTokens,
    AsyncViews,
)

if TYPE_CHECKING:
    from typing import Self

    import httpx

AsyncToken = Union[Token, Callable[[], Awaitable[str]]]


class AsyncAnnals:
    """As Annals, for asyncio: operations are awaited, lists are awaited for a page and iterated
    with `async for`. The functions of `token` may return an awaitable.

    >>> async with AsyncAnnals("https://annals.example.com", "acme", token=key) as annals:
    ...     async for entry in annals.history.list("entity:order"):
    ...         print(entry["at"], entry["actor"])
    """

    def __init__(
        self,
        base_url: str,
        tenant: str,
        *,
        client_id: str | None = None,
        client_secret: str | None = None,
        scope: str | None = None,
        token: AsyncToken | None = None,
        timeout: float = 60.0,
        max_retries: int = 4,
        max_retry_delay: float = 60.0,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        core = core_of(
            base_url,
            tenant,
            client_id=client_id,
            client_secret=client_secret,
            scope=scope,
            token=token,
            timeout=timeout,
            max_retries=max_retries,
            max_retry_delay=max_retry_delay,
        )
        self._core, self._driver = core, AsyncDriver(http_client)
        self.history = AsyncHistory(core, self._driver, "changelog", tenant)
        self.views = AsyncViews(core, self._driver, "changelog", tenant, "views")
        self.subscriptions = AsyncSubscriptions(
            core, self._driver, "changelog", tenant, "subscriptions"
        )
        self.viewer_tokens = AsyncViewerTokens(
            core, self._driver, "changelog", tenant, "viewer-tokens"
        )
        self.custom_entities = AsyncCustomEntities(
            core, self._driver, "schema", tenant, "custom-entities"
        )
        self.configurations = AsyncConfigurations(
            core, self._driver, "configuration", tenant, "configurations"
        )
        self.jobs = AsyncJobs(core, self._driver, "ai-service", tenant, "jobs")

    def instances(self, type: str) -> AsyncInstances:
        """The custom entities of a type."""
        of = ("schema", self._core.tenant, "custom-entities", type, "instances")
        return AsyncInstances(self._core, self._driver, *of)

    def recorder(self, url: str, **options: Unpack[RecorderOptions]) -> AsyncRecorder:
        """As `recorder` of Annals; `flush` and `close` are awaited."""
        return AsyncRecorder(self._core, url, **options)

    async def close(self) -> None:
        """Closes its connections. Recorders have their own."""
        await self._driver.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
