"""The steps to pages: of lists that go on by cursors, and of the change history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from annals._exchange import Request, Steps, path
from annals._operation import Core, PageCore

#: A longer query may have as many characters or terms as the service takes.
MAX_BOUNDED_LENGTH = 2_000


def cursor_pages(
    core: Core, of: str, *, total: bool = False, **query: Any
) -> Callable[[], Steps[PageCore[Any]]]:
    """A list that goes on from page to page by cursors: nothing is skipped, nothing comes twice."""

    def beside(cursor: str | None, name: str) -> Callable[[], Steps[PageCore[Any]]] | None:
        if cursor is None:
            return None
        same: dict[str, Any] = {
            **query,
            "pageNumber": None,
            "next": None,
            "prev": None,
            name: cursor,
        }
        return cursor_pages(core, of, **same)

    def fetch() -> Steps[PageCore[Any]]:
        headers = {"x-total-count": "true" if total else None}
        answer = yield from core.exchange.send(Request("GET", of, query=query, headers=headers))
        count = answer.headers.get("x-total-count")
        next, prev = (answer.headers.get(f"x-{one}-cursor") for one in ("next", "prev"))
        return PageCore(
            items=answer.json(),
            total=None if count is None else int(count),
            following=beside(next, "next"),
            preceding=beside(prev, "prev"),
            next=next,
            prev=prev,
        )

    return fetch


def history_pages(
    core: Core, query: Mapping[str, Any], newest: str | None = None
) -> Callable[[], Steps[PageCore[Any]]]:
    """The change history, newest first. Pages after the first have only entries that existed at the
    first: entries recorded in between would move the others to later pages, where they would come a
    second time. `newest` is that bound."""

    def fetch() -> Steps[PageCore[Any]]:
        bounded = {**query, "q": _bounded(query.get("q"), newest)}
        of = path("changelog", core.tenant, "changelogs")
        found = (yield from core.exchange.send(Request("GET", of, query=bounded))).json()
        number, pages, items = found["page"], found["totalPages"], found["items"]
        bound = newest if newest is not None or number != 1 or not items else items[0]["at"]

        def beside(other: int) -> Callable[[], Steps[PageCore[Any]]] | None:
            if not 1 <= other <= pages:
                return None
            return history_pages(core, {**query, "page": other, "size": found["size"]}, bound)

        return PageCore(
            items=items,
            total=found["totalElements"],
            following=beside(number + 1),
            preceding=beside(number - 1),
            number=number,
            pages=pages,
        )

    return fetch


def quoted(value: str) -> str:
    """A value for a query, in quotes: each of its characters stands for itself.

    >>> annals.history.list(f"entity:order entityId:{quoted(order_id)}")
    """
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _bounded(q: str | None, newest: str | None) -> str | None:
    """An upper bound beside the other terms leaves the service's window as it is."""
    if newest is None or len(q or "") > MAX_BOUNDED_LENGTH:
        return q
    return f'{q or ""} occurredAt:<="{newest}"'
