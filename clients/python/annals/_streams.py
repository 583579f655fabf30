"""What comes in pieces: lines, server-sent events, and the feed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from annals._errors import ApiError
from annals._exchange import Answer, Request, Steps, back_off, path, read_json
from annals._operation import Core

#: Seconds. The service says something every 15 seconds.
MAX_SILENCE = 45.0


class Lines:
    """The lines of a body that comes in pieces, without their ends (LF or CRLF)."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[bytes]:
        *ended, rest = piece.split(b"\n")
        for line in ended:
            whole = b"".join((*self._begun, line)) if self._begun else line
            self._begun.clear()
            yield whole.removesuffix(b"\r")
        if rest:
            self._begun.append(rest)

    def end(self) -> Iterator[bytes]:
        """The last line, where it has no end."""
        if self._begun:
            yield b"".join(self._begun).removesuffix(b"\r")


class Events:
    """The server-sent events of a body that comes in pieces: name, data, id."""

    def __init__(self) -> None:
        self._lines = Lines()
        self._name = "message"
        self._data: list[str] = []
        self._id: str | None = None

    def feed(self, piece: bytes) -> Iterator[tuple[str, str, str | None]]:
        for line in self._lines.feed(piece):
            if not line:
                if self._data:
                    yield self._name, "\n".join(self._data), self._id
                self._name, self._data = "message", []
                continue
            field, _, value = line.decode("utf-8", "replace").partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                self._name = value
            elif field == "data":
                self._data.append(value)
            elif field == "id":
                self._id = value


class Tail:
    """The feed of a query: where it is, and whether it goes on after a fault."""

    def __init__(
        self,
        core: Core,
        q: str | None,
        after: str | None,
        context: bool | None,
        on_cursor: Callable[[str], object] | None,
        on_caught_up: Callable[[], object] | None,
        on_lost: Callable[[ApiError], object] | None,
        on_reset: Callable[[str], object] | None,
    ) -> None:
        self._core = core
        self._query = {"q": q, "after": after, "context": context}
        self._on_cursor = on_cursor
        self._on_caught_up = on_caught_up
        self._on_lost = on_lost
        self._on_reset = on_reset
        self._cursor: str | None = None
        self._attempt = 0
        self._events = Events()

    def connect(self) -> Steps[Answer]:
        self._events = Events()
        request = Request(
            "GET",
            path("changelog", self._core.tenant, "feed"),
            query=self._query,
            headers={"accept": "text/event-stream", "last-event-id": self._cursor},
            timeout=MAX_SILENCE,
            # At first a service that cannot be reached is an error, as of every call.
            max_retries=None if self._cursor is None else 0,
            streamed=True,
        )
        return self._core.exchange.send(request)

    def changes(self, piece: bytes) -> Iterator[Any]:
        for name, data, id in self._events.feed(piece):
            self._attempt = 0
            if name == "change":
                yield read_json(data)
            if id is None:
                continue
            self._cursor = id
            if name == "reset":
                if self._on_reset is not None:
                    self._on_reset(read_json(data)["oldest"])
            elif self._on_cursor is not None:
                self._on_cursor(id)
            if name == "caught-up" and self._on_caught_up is not None:
                self._on_caught_up()

    def lost(self, error: ApiError) -> None:
        """Raises the error where another attempt cannot succeed, or nothing was ever read."""
        status = error.status
        passes = (
            error.type != "invalid_answer" if status is None else status == 429 or status >= 500
        )
        if not passes or (self._cursor is None and self._on_lost is None):
            raise error
        if self._on_lost is not None:
            self._on_lost(error)

    def delay(self) -> float:
        """Seconds before the next connection: none after one that delivered events."""
        self._attempt += 1
        return 0 if self._attempt == 1 else back_off(self._attempt - 1, None)
