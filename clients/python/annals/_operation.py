"""Operations are written once, as steps. On a part of `Annals` they block, on one of `AsyncAnnals`
they are awaited, and type checkers know both."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from dataclasses import dataclass
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from annals._exchange import Exchange, Steps

if TYPE_CHECKING:
    from annals._async_drive import AsyncDriver
    from annals._drive import SyncDriver

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Core:
    """What the parts of a client share: whose operations they are, and how they are sent."""

    tenant: str
    exchange: Exchange


class Sync:
    """A part whose operations block."""

    def __init__(self, core: Core, driver: SyncDriver, *of: str) -> None:
        self._core = core
        self._driver = driver
        self._of = of


class Async:
    """A part whose operations are awaited."""

    def __init__(self, core: Core, driver: AsyncDriver, *of: str) -> None:
        self._core = core
        self._driver = driver
        self._of = of


class operation(Generic[P, T]):
    """A method of steps: `T` on a Sync part, `Awaitable[T]` on an Async one."""

    def __init__(self, function: Callable[Concatenate[Any, P], Steps[T]]) -> None:
        @functools.wraps(function)
        def call(part: Any, *args: P.args, **options: P.kwargs) -> Any:
            return part._driver.run(function(part, *args, **options))

        self._call = call
        functools.update_wrapper(self, function)

    @overload
    def __get__(self, part: None, owner: type) -> operation[P, T]:
        ...

    @overload
    def __get__(self, part: Sync, owner: type) -> Callable[P, T]:
        ...

    @overload
    def __get__(self, part: Async, owner: type) -> Callable[P, Awaitable[T]]:
        ...

    def __get__(self, part: Any, owner: type) -> Any:
        return self if part is None else MethodType(self._call, part)


class listing(Generic[P, T]):
    """A method that returns the steps to its first page: a `Walk[T]` or an `AsyncWalk[T]`."""

    def __init__(self, function: Callable[Concatenate[Any, P], Callable[[], Steps[PageCore[T]]]]):
        @functools.wraps(function)
        def call(part: Any, *args: P.args, **options: P.kwargs) -> Any:
            kind = Walk if isinstance(part, Sync) else AsyncWalk
            return kind(part._driver, function(part, *args, **options))

        self._call = call
        functools.update_wrapper(self, function)

    @overload
    def __get__(self, part: None, owner: type) -> listing[P, T]:
        ...

    @overload
    def __get__(self, part: Sync, owner: type) -> Callable[P, Walk[T]]:
        ...

    @overload
    def __get__(self, part: Async, owner: type) -> Callable[P, AsyncWalk[T]]:
        ...

    def __get__(self, part: Any, owner: type) -> Any:
        return self if part is None else MethodType(self._call, part)


@dataclass(frozen=True, slots=True)
class PageCore(Generic[T]):
    """A page, and the steps to its neighbours; None where there is none."""

    items: list[T]
    #: How many items the whole list has, exactly; None where it was not asked for.
    total: int | None
    following: Callable[[], Steps[PageCore[T]]] | None
    preceding: Callable[[], Steps[PageCore[T]]] | None
    #: Of lists that go on by cursors: the cursors of the neighbours.
    next: str | None = None
    prev: str | None = None
    #: Of the change history: the number of this page, from 1, and of all.
    number: int | None = None
    pages: int | None = None


class _Page(Generic[T]):
    def __init__(self, core: PageCore[T]) -> None:
        self._core = core
        self.items = core.items
        #: How many items the whole list has, exactly; None where it was not asked for.
        self.total = core.total
        #: The cursor of what follows, and of what comes before.
        self.next = core.next
        self.prev = core.prev
        #: The number of a page of the change history, from 1, and how many there are.
        self.number = core.number
        self.pages = core.pages

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"<{len(self.items)} items of {'?' if self.total is None else self.total}>"


class Page(_Page[T]):
    """Items of a list, and the way to the pages beside them."""

    def __init__(self, driver: SyncDriver, core: PageCore[T]) -> None:
        super().__init__(core)
        self._driver = driver

    def next_page(self) -> Page[T] | None:
        """None after the last."""
        return self._beside(self._core.following)

    def previous_page(self) -> Page[T] | None:
        """The page before this one, its items in the same order; None before the first."""
        return self._beside(self._core.preceding)

    def _beside(self, steps: Callable[[], Steps[PageCore[T]]] | None) -> Page[T] | None:
        return None if steps is None else Page(self._driver, self._driver.run(steps()))


class Walk(Generic[T]):
    """A list, not fetched yet. `page()` returns its first page; iterate for all items."""

    def __init__(self, driver: SyncDriver, first: Callable[[], Steps[PageCore[T]]]) -> None:
        self._driver = driver
        self._first = first

    def page(self) -> Page[T]:
        return Page(self._driver, self._driver.run(self._first()))

    def pages(self) -> Iterator[Page[T]]:
        page: Page[T] | None = self.page()
        while page is not None:
            yield page
            page = page.next_page()

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page.items


class AsyncPage(_Page[T]):
    """Items of a list, and the way to the pages beside them."""

    def __init__(self, driver: AsyncDriver, core: PageCore[T]) -> None:
        super().__init__(core)
        self._driver = driver

    async def next_page(self) -> AsyncPage[T] | None:
        """None after the last."""
        return await self._beside(self._core.following)

    async def previous_page(self) -> AsyncPage[T] | None:
        """The page before this one, its items in the same order; None before the first."""
        return await self._beside(self._core.preceding)

    async def _beside(self, steps: Callable[[], Steps[PageCore[T]]] | None) -> AsyncPage[T] | None:
        return None if steps is None else AsyncPage(self._driver, await self._driver.run(steps()))


class AsyncWalk(Generic[T]):
    """A list, not fetched yet. Await it for its first page; iterate with `async for` for all."""

    def __init__(self, driver: AsyncDriver, first: Callable[[], Steps[PageCore[T]]]) -> None:
        self._driver = driver
        self._first = first

    async def page(self) -> AsyncPage[T]:
        return AsyncPage(self._driver, await self._driver.run(self._first()))

    def __await__(self) -> Generator[Any, None, AsyncPage[T]]:
        return self.page().__await__()

    async def pages(self) -> AsyncIterator[AsyncPage[T]]:
        page: AsyncPage[T] | None = await self.page()
        while page is not None:
            yield page
            page = await page.next_page()

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page.items:
                yield item
