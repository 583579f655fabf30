"""Who makes the changes of a database: a context that follows the call, and the tasks it starts."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from annals import _json
from annals._warnings import warn_once

F = TypeVar("F", bound=Callable[..., Any])

MAX_NAME = 1_000
MAX_CORRELATION = 200
MAX_CONTEXT_BYTES = 4_096
MAX_CONTEXT_LEVELS = 4

Id = str | int


@dataclass(frozen=True, slots=True)
class Context:
    """Who makes changes, and what is recorded with them."""

    #: A name, at most 1,000 characters.
    actor: str | None = None
    #: Identifies the actor, at most 1,000 characters.
    actor_id: Id | None = None
    #: A name, or `{"name", "id"}`, or one of the two.
    on_behalf_of: str | Mapping[str, Any] | None = None
    #: At most 200 characters. Changes with the same one belong together.
    correlation_id: str | None = None
    #: A JSON object of at most 4,096 bytes and 4 levels.
    context: Mapping[str, Any] | None = None

    def merged(self, part: Context) -> Context:
        """`part` over this one, member by member. One with `actor` or `actor_id` replaces both and
        `on_behalf_of`, so that a name never gets the id of somebody else. The members of `context`
        are merged one by one."""
        base = self
        if part.actor is not None or part.actor_id is not None:
            base = replace(base, actor=None, actor_id=None, on_behalf_of=None)
        given = {
            name: value
            for name in ("actor", "actor_id", "on_behalf_of", "correlation_id", "context")
            if (value := getattr(part, name)) is not None
        }
        if base.context is not None and part.context is not None:
            given["context"] = {**base.context, **part.context}
        return replace(base, **given)


class _Store:
    """The context of a request or of a block. `set_context` changes it for all that it started."""

    __slots__ = ("value", "opener", "outer", "_of", "_text")

    def __init__(self, value: Context | None, opener: context, outer: _Store | None) -> None:
        #: None outside of every context.
        self.value = value
        self.opener = opener
        self.outer = outer
        self._of: Context | None = None
        self._text: str | None = None

    def text(self) -> str | None:
        value = self.value
        if self._of is not value:
            self._text, self._of = _safe_text(value), value
        return self._text


_current: ContextVar[_Store | None] = ContextVar("annals.context", default=None)


class context:
    """Who makes the changes of a block or a function, with all that it starts: a context manager
    and a decorator, for functions, generators and coroutines. One inside of another replaces it.

    >>> with annals.context(actor="Jane Doe", actor_id="u-17"):
    ...     session.commit()

    >>> @annals.context(actor="nightly cleanup")
    ... def clean_up(): ...
    """

    def __init__(
        self,
        *,
        actor: str | None = None,
        actor_id: Id | None = None,
        on_behalf_of: str | Mapping[str, Any] | None = None,
        correlation_id: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> None:
        self._value: Context | None = Context(
            actor, actor_id, on_behalf_of, correlation_id, context
        )

    def __enter__(self) -> None:
        _current.set(_Store(self._value, self, _current.get()))

    def __exit__(self, *_: object) -> None:
        """Ends what it opened, also where blocks of generators end out of order, or in another
        thread, where there is nothing to end."""
        inner, store = None, _current.get()
        while store is not None and store.opener is not self:
            inner, store = store, store.outer
        if store is None:
            return
        if inner is None:
            _current.set(store.outer)
        else:
            inner.outer = store.outer
        store.outer = None

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()

    def __call__(self, function: F) -> F:
        """The function, with this context in each of its calls."""
        of = self._again
        wrapped: Any
        if inspect.iscoroutinefunction(function):

            async def wrapped(*args: Any, **options: Any) -> Any:
                with of():
                    return await function(*args, **options)

        elif inspect.isasyncgenfunction(function):
            raise TypeError("An async generator runs in its caller's context: use `with` in it.")
        elif inspect.isgeneratorfunction(function):
            raise TypeError("A generator runs in its caller's context: use `with` in the caller.")
        else:

            def wrapped(*args: Any, **options: Any) -> Any:
                with of():
                    return function(*args, **options)

        decorated: F = functools.wraps(function)(wrapped)
        return decorated

    def _again(self) -> context:
        """One of its own for each call: calls may be nested and concurrent."""
        other = context()
        other._value = self._value
        return other


def without_context() -> context:
    """A block outside of every context: its changes are not attributed."""
    outside = context()
    outside._value = None
    return outside


def set_context(
    *,
    actor: str | None = None,
    actor_id: Id | None = None,
    on_behalf_of: str | Mapping[str, Any] | None = None,
    correlation_id: str | None = None,
    context: Mapping[str, Any] | None = None,
) -> bool:
    """Adds to the context, for the rest of the request or the block. `actor` or `actor_id` replace
    both of them and `on_behalf_of`; the members of `context` are merged. Returns False outside of a
    context, where it has no effect."""
    store = _current.get()
    if store is None or store.value is None:
        return False
    part = Context(actor, actor_id, on_behalf_of, correlation_id, context)
    store.value = store.value.merged(part)
    return True


def current_context() -> Context | None:
    """The current context; None outside of a request and of a block."""
    store = _current.get()
    return None if store is None else store.value


def current_text() -> str | None:
    """The text of `annals.who` of the current context; None where it has no member."""
    store = _current.get()
    return None if store is None else store.text()


def _safe_text(value: Context | None) -> str | None:
    """A mapping of the application may raise: that costs the actor, and not the statement."""
    try:
        return None if value is None else wire_text(value)
    except Exception as error:
        warn_once("context", f"A context cannot be read ({type(error).__name__}): it is left out.")
        return None


def wire_text(value: Context) -> str | None:
    """A context as the ASCII JSON of `annals.who`. A member that Annals would not accept is left
    out, with a warning, so that the others count. None if none is left."""
    person = value.on_behalf_of
    if isinstance(person, str):
        person = {"name": person}
    name = id = None
    if isinstance(person, Mapping):
        name = _name("on_behalf_of.name", person.get("name"))
        id = _name("on_behalf_of.id", person.get("id"))
    elif person is not None:
        _leave_out("on_behalf_of", "is no name or mapping")
    behalf = {key: one for key, one in (("name", name), ("id", id)) if one is not None}
    members = {
        "actor": _name("actor", value.actor),
        "actorId": _name("actor_id", value.actor_id),
        "onBehalfOf": behalf or None,
        "correlationId": _name("correlation_id", value.correlation_id, MAX_CORRELATION),
        "context": _circumstances(value.context),
    }
    present = {key: one for key, one in members.items() if one is not None}
    return _json.write(present) if present else None


def _name(member: str, value: Any, maximum: int = MAX_NAME) -> str | None:
    if value is None:
        return None
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    fault = None
    if not isinstance(text, str):
        fault = "is no text"
    elif text == "":
        fault = "is empty"
    elif len(text) > maximum:
        fault = f"has more than {maximum} characters"
    elif not _is_storable(text):
        fault = "has a NUL character or a lone surrogate"
    if fault is None:
        return str(text)
    _leave_out(member, fault)
    return None


def _circumstances(value: Any) -> Any:
    if value is None:
        return None
    try:
        text = _json.write(dict(value))
        parsed = json.loads(text)
        levels = _levels(parsed)
    except (TypeError, ValueError, RecursionError):
        _leave_out("context", "cannot be written as a JSON object")
        return None
    if not all(map(_is_storable, _texts(parsed))):
        fault = "has a NUL character or a lone surrogate"
    elif len(text) > MAX_CONTEXT_BYTES:
        fault = f"has more than {MAX_CONTEXT_BYTES} bytes"
    elif levels > MAX_CONTEXT_LEVELS:
        fault = f"has more than {MAX_CONTEXT_LEVELS} levels"
    else:
        return dict(value)
    _leave_out("context", fault)
    return None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _levels(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max((_levels(one) for one in value.values()), default=0)
    if isinstance(value, list):
        return 1 + max((_levels(one) for one in value), default=0)
    return 0


def _is_storable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= one <= "\udfff" for one in text)


def _leave_out(member: str, fault: str) -> None:
    warn_once(f"member {member}", f"The member {member} of a context {fault}: it is left out.")
