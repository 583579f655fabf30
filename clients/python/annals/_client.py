"""The client of the service that blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Union, Unpack

from annals._drive import SyncDriver
from annals._exchange import ClientTokens, Exchange, GivenTokens
from annals._operation import Core
from annals._recorder import Recorder, RecorderOptions
from annals._resources import (
    SyncConfigurations,
    SyncCustomEntities,
    SyncHistory,
    SyncInstances,
    SyncJobs,
    SyncSubscriptions,
    SyncViewerTokens,
    SyncViews,
)

if TYPE_CHECKING:
    import httpx
    from typing import Self

Token = Union[str, Callable[[], str]]


def core_of(
    base_url: str,
    tenant: str,
    *,
    client_id: str | None,
    client_secret: str | None,
    scope: str | None,
    token: Any,
    timeout: float,
    max_retries: int,
    max_retry_delay: float,
) -> Core:
    exchange = Exchange(base_url.rstrip("/"), timeout, max_retries, max_retry_delay)
    if token is not None:
        if client_id is not None or client_secret is not None:
            raise TypeError("Give a client's id and secret, or a token, and not both.")
        exchange.tokens = GivenTokens(token)
    elif client_id is None or client_secret is None:
        raise TypeError("client_id and client_secret are needed, or a token.")
    else:
        exchange.tokens = ClientTokens(exchange, client_id, client_secret, scope)
    return Core(tenant, exchange)


class Annals:
    """A client of the service, for one tenant. An application shares one among all its threads: it
    keeps one access token.

    >>> annals = Annals("https://annals.example.com", "acme", client_id=…, client_secret=…)
    >>> for entry in annals.history.list("entity:order"):
    ...     print(entry["at"], entry["actor"])

    - `token`: an access token or an API key in place of a client, or a function that returns one
      and is called before each attempt.
    - `timeout`: seconds that an attempt has until the last byte of its answer; of a stream, the
      longest silence.
    - `max_retries`: attempts after the first.
    - `max_retry_delay`: seconds. A longer `Retry-After` is not waited for.
    - `http_client`: sends the requests: a proxy, own certificates.

    Operations raise ApiError.
    """

    def __init__(
        self,
        base_url: str,
        tenant: str,
        *,
        client_id: str | None = None,
        client_secret: str | None = None,
        scope: str | None = None,
        token: Token | None = None,
        timeout: float = 60.0,
        max_retries: int = 4,
        max_retry_delay: float = 60.0,
        http_client: httpx.Client | None = None,
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
        self._core, self._driver = core, SyncDriver(http_client)
        self.history = SyncHistory(core, self._driver, "changelog", tenant)
        self.views = SyncViews(core, self._driver, "changelog", tenant, "views")
        self.subscriptions = SyncSubscriptions(
            core, self._driver, "changelog", tenant, "subscriptions"
        )
        self.viewer_tokens = SyncViewerTokens(
            core, self._driver, "changelog", tenant, "viewer-tokens"
        )
        self.custom_entities = SyncCustomEntities(
            core, self._driver, "schema", tenant, "custom-entities"
        )
        self.configurations = SyncConfigurations(
            core, self._driver, "configuration", tenant, "configurations"
        )
        self.jobs = SyncJobs(core, self._driver, "ai-service", tenant, "jobs")

    def instances(self, type: str) -> SyncInstances:
        """The custom entities of a type."""
        of = ("schema", self._core.tenant, "custom-entities", type, "instances")
        return SyncInstances(self._core, self._driver, *of)

    def recorder(self, url: str, **options: Unpack[RecorderOptions]) -> Recorder:
        """Records changes of your application. `url` is that of the recorder, a listener beside the
        service. For the options see Recorder."""
        return Recorder(self._core, url, **options)

    def close(self) -> None:
        """Closes its connections. Recorders have their own."""
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
