"""The operations of the service, each written once: as steps."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from annals._errors import ApiError
from annals._exchange import Answer, Request, Sleep, Steps, json_body, path, read_json
from annals._operation import Async, Core, PageCore, Sync, listing, operation
from annals._pages import cursor_pages, history_pages
from annals._streams import Lines, Tail

if TYPE_CHECKING:
    from annals import schemas

First = Callable[[], Steps[PageCore[Any]]]
Json = Mapping[str, Any]

#: Seconds between two looks at a job.
MIN_PAUSE = 0.2
MAX_PAUSE = 5.0


class _Part:
    """What `Sync` and `Async` give to the operations."""

    _core: Core
    _of: tuple[str, ...]

    def _send(
        self,
        method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"],
        *of: str,
        body: Any = None,
        **query: Any,
    ) -> Steps[Answer]:
        content = None if body is None else json_body(body)
        return self._core.exchange.send(
            Request(method, path(*self._of, *of), query=query, body=content)
        )

    def _json(
        self, method: Literal["GET", "POST", "PUT"], *of: str, body: Any = None, **query: Any
    ) -> Steps[Any]:
        return (yield from self._send(method, *of, body=body, **query)).json()


class ListParameters(TypedDict, total=False):
    """What a list takes that goes on by cursors."""

    #: A filter, in the query language.
    q: str
    #: `field:ASC,other:DESC`, up to 8 fields. Default: by id.
    sort: str
    #: The field paths that are wanted, with commas between them; the id always is.
    fields: str
    #: Items of a page: 1 to 500. Default: 60.
    page_size: int
    #: The page to begin with; the first is 1.
    page_number: int
    #: Begins after this cursor, that of an earlier page.
    next: str
    #: Begins with the page before this cursor.
    prev: str
    #: Asks for the number of all items. A page that is reached by a cursor has none.
    total: bool


_PARAMETERS = {"page_size": "pageSize", "page_number": "pageNumber"}


class _Lists(_Part):
    def _pages(self, *of: str, **parameters: Unpack[ListParameters]) -> First:
        unknown = parameters.keys() - ListParameters.__annotations__.keys()
        if unknown:
            raise TypeError(f"A list takes no {', '.join(sorted(unknown))}.")
        total = parameters.get("total", False)
        query = {_PARAMETERS.get(name, name): one for name, one in parameters.items()}
        query.pop("total", None)
        return cursor_pages(self._core, path(*self._of, *of), total=total, **query)


class History(_Part):
    """The change history of the tenant: who changed which document, when, and from what to what."""

    @listing
    def list(
        self,
        q: str | None = None,
        *,
        page: int | None = None,
        size: int | None = None,
        context: bool | None = None,
        ref: bool | None = None,
        value_limit: int | None = None,
    ) -> Callable[[], Steps[PageCore[schemas.ChangeEntry]]]:
        """The entries that match, newest first. Without an `occurredAt` from-bound: those of the
        last 30 days. `size` is 1 to 100, by default 20. `context` needs
        `changelog.changelog_manage`. Values with more than `value_limit` bytes (256 or more) are
        cut.
        """
        query = {"q": q, "page": page, "size": size, "context": context, "ref": ref}
        return history_pages(self._core, {**query, "valueLimit": value_limit})

    @operation
    def entry(
        self, ref: str, *, context: bool | None = None, value_limit: int | None = None
    ) -> Steps[schemas.ChangeEntry]:
        """The entry that has a `ref`. The list shows refs with `ref=True`."""
        return self._json("GET", "entries", ref=ref, context=context, valueLimit=value_limit)

    @operation
    def document(
        self,
        entity: str,
        entity_id: str,
        *,
        at: datetime | str | None = None,
        changes: int | None = None,
    ) -> Steps[schemas.DocumentAtMoment]:
        """A document at a moment, or after its first `changes` changes. Default: now."""
        return self._json(
            "GET", "documents", entity=entity, entityId=entity_id, at=at, changes=changes
        )

    @operation
    def histogram(
        self,
        q: str | None = None,
        *,
        buckets: int | None = None,
        time_zone: str | None = None,
    ) -> Steps[schemas.ChangeHistogram]:
        """How many of the changes that match occurred when, by type: exactly. At most `buckets`,
        1 to 500, by default 60; days begin at midnight of an IANA time zone, by default UTC."""
        return self._json("GET", "histogram", q=q, buckets=buckets, timeZone=time_zone)

    @operation
    def facets(
        self, field: str, *, q: str | None = None, size: int | None = None
    ) -> Steps[schemas.ChangeFacets]:
        """The values of a field that most of the changes that match have. `field` is `entity`,
        `type`, `actor`, `actorId`, `onBehalfOf`, `path` or `context.` with a member."""
        return self._json("GET", "facets", q=q, field=field, size=size)

    @operation
    def names(
        self,
        field: Literal["entity", "actor", "related.entity", "path"],
        *,
        prefix: str | None = None,
        entity: str | None = None,
        size: int | None = None,
    ) -> Steps[schemas.ChangeNames]:
        """The names that begin with a prefix, whatever the case."""
        return self._json("GET", "names", field=field, prefix=prefix, entity=entity, size=size)

    @operation
    def documents(
        self,
        prefix: str | None = None,
        *,
        entity: str | None = None,
        changed_before: datetime | str | None = None,
        size: int | None = None,
    ) -> Steps[schemas.DocumentNames]:
        """The documents whose id, or words of whose last name, begin with a prefix, the latest
        changed first. Without `changed_before` an exact id and then exact names come before them.
        """
        return self._json(
            "GET",
            "names",
            field="document",
            prefix=prefix,
            entity=entity,
            changedBefore=changed_before,
            size=size,
        )

    @operation
    def recorders(self) -> Steps[schemas.ChangeRecorders]:
        """What records changes, and when each did so last. Needs `changelog.changelog_manage`."""
        return self._json("GET", "recorders")

    @listing
    def actors(
        self,
        prefix: str | None = None,
        *,
        sort: str | None = None,
        page_size: int | None = None,
        page_number: int | None = None,
        next: str | None = None,
        prev: str | None = None,
        total: bool = False,
    ) -> Callable[[], Steps[PageCore[schemas.Actor]]]:
        """The people and programs that made changes, with their names, by id."""
        return cursor_pages(
            self._core,
            path(*self._of, "actors"),
            total=total,
            prefix=prefix,
            sort=sort,
            pageSize=page_size,
            pageNumber=page_number,
            next=next,
            prev=prev,
        )


class SyncHistory(History, Sync):
    def tail(
        self,
        q: str | None = None,
        *,
        after: str | None = None,
        context: bool | None = None,
        on_cursor: Callable[[str], object] | None = None,
        on_caught_up: Callable[[], object] | None = None,
        on_lost: Callable[[ApiError], object] | None = None,
        on_reset: Callable[[str], object] | None = None,
    ) -> Iterator[schemas.FeedChange]:
        """The changes that match as they are recorded, oldest first. It goes on after faults until
        the caller leaves the loop. Each change comes at least once; what comes twice has the same
        `ref`.

        `after` is the `cursor` of the last change that was dealt with, `start` or `now` (the
        default). `on_cursor` gets each cursor that is reached, matches or not; `on_caught_up` is
        called when all that was there is read; `on_lost` gets the error of each attempt that
        failed; `on_reset` the oldest cursor, where the database was restored to an earlier state.
        """
        tail = Tail(self._core, q, after, context, on_cursor, on_caught_up, on_lost, on_reset)
        while True:
            try:
                with self._driver.run(tail.connect()).stream as pieces:
                    for piece in pieces:
                        yield from tail.changes(piece)
            except ApiError as error:
                tail.lost(error)
            time.sleep(tail.delay())


class AsyncHistory(History, Async):
    async def tail(
        self,
        q: str | None = None,
        *,
        after: str | None = None,
        context: bool | None = None,
        on_cursor: Callable[[str], object] | None = None,
        on_caught_up: Callable[[], object] | None = None,
        on_lost: Callable[[ApiError], object] | None = None,
        on_reset: Callable[[str], object] | None = None,
    ) -> AsyncIterator[schemas.FeedChange]:
        """As `tail` of `Annals.history`."""
        from asyncio import sleep

        tail = Tail(self._core, q, after, context, on_cursor, on_caught_up, on_lost, on_reset)
        while True:
            try:
                async with (await self._driver.run(tail.connect())).stream as pieces:
                    async for piece in pieces:
                        for change in tail.changes(piece):
                            yield change
            except ApiError as error:
                tail.lost(error)
            await sleep(tail.delay())


class Views(_Lists):
    """Queries of the change history that the tenant keeps by name."""

    @listing
    def list(
        self, **parameters: Unpack[ListParameters]
    ) -> Callable[[], Steps[PageCore[schemas.SavedView]]]:
        """The views of the tenant; with `sort="position"` in the order in which people see them."""
        return self._pages(**parameters)

    @operation
    def get(self, id: str) -> Steps[schemas.SavedView]:
        return self._json("GET", id)

    @operation
    def create(self, view: schemas.SavedViewInput) -> Steps[str]:
        """Makes a view, and returns its id: a random one where it has none."""
        return (yield from self._json("POST", body=view))["id"]

    @operation
    def put(self, id: str, view: schemas.SavedViewInput) -> Steps[bool]:
        """Makes or replaces a view: whether it was made. With the `metadata.version` that was read,
        a change in between is refused (409)."""
        return (yield from self._send("PUT", id, body=view)).status == 201

    @operation
    def delete(self, id: str) -> Steps[None]:
        yield from self._send("DELETE", id)


class SyncViews(Views, Sync):
    pass


class AsyncViews(Views, Async):
    pass


class Subscriptions(_Lists):
    """What goes out of the change history: webhooks, batches and e-mails, and how they fare."""

    @listing
    def list(
        self, **parameters: Unpack[ListParameters]
    ) -> Callable[[], Steps[PageCore[schemas.Subscription]]]:
        return self._pages(**parameters)

    @operation
    def get(self, id: str) -> Steps[schemas.Subscription]:
        return self._json("GET", id)

    @operation
    def create(self, subscription: schemas.SubscriptionInput) -> Steps[schemas.SubscriptionCreated]:
        """Makes a subscription. The answer has the secret of its signatures, or their public key,
        this once."""
        return self._json("POST", body=subscription)

    @operation
    def replace(self, id: str, subscription: schemas.SubscriptionInput) -> Steps[None]:
        """Replaces a subscription and takes it over. With the `metadata.version` that was read, a
        change in between is refused (409)."""
        yield from self._send("PUT", id, body=subscription)

    @operation
    def delete(self, id: str) -> Steps[None]:
        yield from self._send("DELETE", id)

    @operation
    def test(self, id: str) -> Steps[schemas.DeliveryTest]:
        """Sends a sample that says so, and tells how the target took it."""
        return self._json("POST", id, "test")

    @operation
    def pause(self, id: str) -> Steps[None]:
        yield from self._send("POST", id, "pause")

    @operation
    def resume(self, id: str, *, from_: str | None = None) -> Steps[None]:
        """Lets a subscription go on where it stopped; `from_` only if its place was lost."""
        yield from self._send("POST", id, "resume", body={} if from_ is None else {"from": from_})

    @operation
    def replay(self, id: str, what: schemas.ReplayInput) -> Steps[None]:
        """Sends changes once more: those between two cursors or times of recording, or those that
        are parked."""
        yield from self._send("POST", id, "replay", body=what)

    @operation
    def rotate(self, id: str) -> Steps[schemas.RotatedKey]:
        """Makes a new key for signatures. The one before signs as well for 24 hours."""
        return self._json("POST", id, "rotate")

    @listing
    def attempts(
        self, id: str, **parameters: Unpack[ListParameters]
    ) -> Callable[[], Steps[PageCore[schemas.DeliveryAttemptItem]]]:
        """The attempts of the last days, oldest first; with `sort="_id:DESC"` the newest first."""
        return self._pages(id, "attempts", **parameters)

    @operation
    def sent_request(self, id: str, attempt: str) -> Steps[schemas.SentRequest]:
        """What an attempt of a webhook sent, rebuilt with today's masks and erasures."""
        return self._json("GET", id, "attempts", attempt, "request")

    @operation
    def preview(
        self, id: str, *, after: str | None = None, limit: int | None = None
    ) -> Steps[schemas.SubscriptionPreview]:
        """What would have been sent in the last day, or behind the cursor of the answer before."""
        return self._json("GET", id, "preview", after=after, limit=limit)

    @operation
    def delete_parked(self, id: str) -> Steps[None]:
        yield from self._send("DELETE", id, "parked")


class SyncSubscriptions(Subscriptions, Sync):
    pass


class AsyncSubscriptions(Subscriptions, Async):
    pass


class CustomEntities(_Lists):
    """The types of custom entities that the tenant has made."""

    @listing
    def list(
        self, **parameters: Unpack[ListParameters]
    ) -> Callable[[], Steps[PageCore[schemas.CustomEntityType]]]:
        return self._pages(**parameters)

    @operation
    def get(self, type: str) -> Steps[schemas.CustomEntityType]:
        return self._json("GET", type)

    @operation
    def create(self, type: Json) -> Steps[None]:
        """Makes a type. Its `id` is capital letters, digits and `_`, a letter first."""
        yield from self._send("POST", body=type)

    @operation
    def put(self, type: str, content: schemas.CustomEntityTypeInput) -> Steps[bool]:
        """Makes or replaces a type: whether it was made."""
        return (yield from self._send("PUT", type, body=content)).status == 201

    @operation
    def delete(self, type: str) -> Steps[None]:
        """Deletes a type that has no instances."""
        yield from self._send("DELETE", type)


class SyncCustomEntities(CustomEntities, Sync):
    pass


class AsyncCustomEntities(CustomEntities, Async):
    pass


class Instances(_Lists):
    """The custom entities of one type."""

    @listing
    def list(
        self, **parameters: Unpack[ListParameters]
    ) -> Callable[[], Steps[PageCore[schemas.CustomInstance]]]:
        """The instances that match `q`, in the order of `sort` (`slots:DESC`), by default by id."""
        return self._pages(**parameters)

    @operation
    def get(self, id: str) -> Steps[schemas.CustomInstance]:
        return self._json("GET", id)

    @operation
    def create(self, content: Json) -> Steps[str]:
        """Makes an instance, and returns its id: the one in `content`, or one drawn at random."""
        return (yield from self._json("POST", body=content))["id"]

    @operation
    def put(self, id: str, content: Json) -> Steps[bool]:
        """Makes or replaces an instance: whether it was made. With the `metadata.version` that was
        read, a change in between is refused (409)."""
        return (yield from self._send("PUT", id, body=content)).status == 201

    @operation
    def patch(self, id: str, operations: Sequence[schemas.JsonPatchOperation]) -> Steps[None]:
        """Changes an instance by a patch (RFC 6902): all operations, or none."""
        yield from self._send("PATCH", id, body=operations)

    @operation
    def delete(self, id: str) -> Steps[None]:
        yield from self._send("DELETE", id)


class SyncInstances(Instances, Sync):
    pass


class AsyncInstances(Instances, Async):
    pass


class Configurations(_Part):
    """The settings of the tenant. A secured value never comes back: `********` is in its place."""

    @operation
    def list(self, *, keys: Sequence[str] | None = None) -> Steps[Sequence[schemas.Configuration]]:
        """All settings, or those of the keys."""
        return self._json("GET", keys=None if keys is None else ",".join(keys))

    @operation
    def get(self, key: str) -> Steps[schemas.Configuration]:
        return self._json("GET", key)

    @operation
    def create(
        self, items: Sequence[schemas.NewConfiguration]
    ) -> Steps[Sequence[schemas.Configuration]]:
        """Makes settings: all of them, or none where one of the keys exists (409)."""
        return self._json("POST", body=items)

    @operation
    def replace(self, key: str, item: Json) -> Steps[schemas.Configuration]:
        """Replaces a setting that exists. With the `version` that was read, a change in between is
        refused (409)."""
        return self._json("PUT", key, body={**item, "key": key})

    @operation
    def delete(self, key: str) -> Steps[None]:
        yield from self._send("DELETE", key)


class SyncConfigurations(Configurations, Sync):
    pass


class AsyncConfigurations(Configurations, Async):
    pass


class ViewerTokens(_Part):
    """Tokens with which a platform's customers see their part of the history."""

    @operation
    def create(self, token: schemas.NewViewerToken) -> Steps[schemas.ViewerToken]:
        return self._json("POST", body=token)


class SyncViewerTokens(ViewerTokens, Sync):
    pass


class AsyncViewerTokens(ViewerTokens, Async):
    pass


@dataclass(frozen=True, slots=True)
class ExportFile:
    """The file of an export. Enter `pieces` once to iterate over its bytes."""

    content_type: str
    pieces: AbstractContextManager[Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class AsyncExportFile:
    """The file of an export. Enter `pieces` once to iterate over its bytes."""

    content_type: str
    pieces: AbstractAsyncContextManager[AsyncIterator[bytes]]


class Jobs(_Lists):
    """Work that outlives its request: exports of the change history, and chats."""

    @listing
    def list(
        self, **parameters: Unpack[ListParameters]
    ) -> Callable[[], Steps[PageCore[schemas.Job]]]:
        return self._pages(**parameters)

    @operation
    def get(self, id: str) -> Steps[schemas.Job]:
        return self._json("GET", id)

    @operation
    def delete(self, id: str) -> Steps[None]:
        """Deletes a job with its file. One that runs stops."""
        yield from self._send("DELETE", id)

    @operation
    def export(
        self,
        q: str | None = None,
        *,
        format: Literal["NDJSON", "CSV"] = "NDJSON",
        rows: Literal["change", "field"] | None = None,
        bom: bool | None = None,
        context: bool | None = None,
        proof: bool | None = None,
    ) -> Steps[str]:
        """Starts an export of the change history, and returns the id of its job. Without an
        `occurredAt` from-bound: the 30 days before this call. `rows` and `bom` are of CSV: a row
        for each change or each path, and a byte order mark. `context` needs
        `changelog.changelog_manage`, `proof` (a bundle) `changelog.proof_read`."""
        body = {
            "type": "EXPORT",
            "q": q,
            "format": format,
            "rows": rows,
            "bom": bom,
            "context": context,
            "proof": proof,
        }
        given = {name: value for name, value in body.items() if value is not None}
        return (yield from self._json("POST", body=given))["jobId"]

    @operation
    def wait(self, id: str, *, limit: float | None = None) -> Steps[schemas.Job]:
        """Waits until a job has ended, at most `limit` seconds. A job that failed is an ApiError
        with its `type`; one that was skipped is returned."""
        until = None if limit is None else time.monotonic() + limit
        pause = MIN_PAUSE
        while True:
            job = yield from self._json("GET", id)
            if job["status"] == "failure":
                error = job["metadata"].get("error") or {}
                text = error.get("message", "The job has failed.")
                raise ApiError(error.get("type", "unknown"), text, request_id=job.get("requestId"))
            if job["status"] != "in_progress":
                return job
            left = float("inf") if until is None else until - time.monotonic()
            if left <= 0:
                raise ApiError("timeout", f"The job {id} has not ended within {limit} s.")
            yield Sleep(min(left, pause * (0.75 + random.random() / 4)))
            pause = min(pause * 1.5, MAX_PAUSE)

    def _open(self, id: str) -> Steps[Answer]:
        request = Request(
            "GET", path(*self._of, id, "content"), headers={"accept": "*/*"}, streamed=True
        )
        return self._core.exchange.send(request)


class SyncJobs(Jobs, Sync):
    def content(self, id: str) -> ExportFile:
        """The file of an export that has succeeded."""
        answer = self._driver.run(self._open(id))
        return ExportFile(answer.headers.get("content-type", ""), answer.stream)

    def entries(self, id: str) -> Iterator[schemas.ChangeEntry]:
        """The entries of an export in the format NDJSON, one at a time, however many there are."""
        lines = Lines()
        with self.content(id).pieces as pieces:
            for piece in pieces:
                yield from map(read_json, lines.feed(piece))
            yield from map(read_json, lines.end())


class AsyncJobs(Jobs, Async):
    async def content(self, id: str) -> AsyncExportFile:
        """The file of an export that has succeeded."""
        answer = await self._driver.run(self._open(id))
        return AsyncExportFile(answer.headers.get("content-type", ""), answer.stream)

    async def entries(self, id: str) -> AsyncIterator[schemas.ChangeEntry]:
        """The entries of an export in the format NDJSON, one at a time, however many there are."""
        lines = Lines()
        async with (await self.content(id)).pieces as pieces:
            async for piece in pieces:
                for line in lines.feed(piece):
                    yield read_json(line)
            for line in lines.end():
                yield read_json(line)
