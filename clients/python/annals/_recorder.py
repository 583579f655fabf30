"""Records changes of an application, beside it: in batches, in their order, each exactly once."""

from __future__ import annotations

import atexit

# httpx loads it, which fails while the interpreter ends: a thread's first request may be that late.
import concurrent.futures.thread  # noqa: F401
import gzip
import inspect
import os
import sys
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from annals import _forks, _json
from annals._drive import SyncDriver
from annals._errors import ApiError, error_of_answer
from annals._exchange import MAX_DELAY, GivenTokens, Request, back_off, path, read_json
from annals._operation import Core
from annals._warnings import logger, warn_once

if TYPE_CHECKING:
    from typing import Self

#: Bytes: a request may have twice as many, and one with a single change four times.
MAX_BATCH_BYTES = 4 * 1024 * 1024
MAX_CHANGE_BYTES = 16 * 1024 * 1024
#: Shorter bodies are not worth packing.
MIN_PACKED_BYTES = 1024

COUNTS = ("read", "recorded", "unchanged", "duplicate", "expired", "ignored")


class Who(TypedDict, total=False):
    """What a change and an event have in common."""

    #: When it happened. Default: now.
    at: datetime | str
    #: The display name of the document.
    name: str
    #: Who did it. Needs the scope `recorder.actor_set`. Default: the name of the client.
    actor: str
    #: Identifies the actor, at most 1,000 characters.
    actor_id: str
    #: `{"name", "id"}`, or one of the two.
    on_behalf_of: Mapping[str, str]
    #: The same for all changes of a request or task, at most 200 characters.
    correlation_id: str
    #: `{"entity", "entityId"}` each.
    related: Sequence[Mapping[str, Any]]
    #: A JSON object of at most 4 KiB and 4 levels.
    context: Mapping[str, Any]


#: As the service calls them.
_MEMBERS = {
    "at": "at",
    "name": "name",
    "actor": "actor",
    "actor_id": "actorId",
    "on_behalf_of": "onBehalfOf",
    "correlation_id": "correlationId",
    "related": "related",
    "context": "context",
}


class RecorderOptions(TypedDict, total=False):
    """The options of a recorder: see Recorder."""

    delay: float
    batch: int
    buffer: int
    buffer_bytes: int
    exit_timeout: float
    on_rejected: Callable[[str, str], object]
    on_retry: Callable[[ApiError, float], object]


Reason = Literal["full", "invalid", "too_large", "refused", "closed", "unsent"]


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


#: A document that does not exist, which is not the same as None: that is JSON's null.
MISSING: Any = _Missing()


class _Recorder:
    """Records changes beside the application, in a thread of its own: `record` and `event` neither
    raise nor wait. What cannot be kept is dropped and counted, by reason, in `dropped`.

    Changes share requests, and arrive in the order of the calls. Each has one id and one time over
    all attempts, so what arrives twice is recorded once. What passes (the service is away, slow, or
    asks to wait) is repeated until it succeeds. A process that ends sends what it has before,
    within `exit_timeout`; a fork begins with an empty recorder.

    - `delay`: seconds that a change waits for others to share its request.
    - `batch`: changes of a request, 1 to 2,000.
    - `buffer`, `buffer_bytes`: changes that are not committed, and their bytes, before further ones
      are dropped.
    - `exit_timeout`: seconds that the end of the process waits for what is left.
    - `on_rejected`: called in the recorder's thread with the line and the reason of a change that
      can never be recorded. The service keeps it where it could read it.
    - `on_retry`: called there with the error of an attempt and the seconds until the next one.
    """

    def __init__(
        self,
        core: Core,
        url: str,
        *,
        delay: float = 0.2,
        batch: int = 2_000,
        buffer: int = 10_000,
        buffer_bytes: int = 32 * 1024 * 1024,
        exit_timeout: float = 5.0,
        on_rejected: Callable[[str, str], object] | None = None,
        on_retry: Callable[[ApiError, float], object] | None = None,
    ) -> None:
        if not 1 <= batch <= 2_000:
            raise ValueError(f"batch is 1 to 2,000, and not {batch}.")
        tokens = core.exchange.tokens
        if isinstance(tokens, GivenTokens) and inspect.iscoroutinefunction(tokens.function):
            raise TypeError(
                "A recorder has a thread of its own: it needs a token function that is not async."
            )
        self._exchange = replace(core.exchange, base_url=url.rstrip("/"), max_retries=0)
        self._path = path("recorder", core.tenant, "changes")
        self._delay, self._batch = delay, batch
        self._buffer, self._buffer_bytes = buffer, buffer_bytes
        self._exit_timeout = exit_timeout
        self._on_rejected, self._on_retry = on_rejected, on_retry
        self._driver = SyncDriver()
        self._is_closed = False
        self._reset()
        _forks.after_fork(self)
        _recorders.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._accepted = self._settled = 0
        self._awaited = 0
        #: Nanoseconds since 1970.
        self._latest = 0
        self._thread: threading.Thread | None = None
        self._must_stop = False
        self._is_away = False
        self._error: ApiError | None = None
        self._counts = Counter({name: 0 for name in (*COUNTS, "rejected")})
        self._dropped: Counter[str] = Counter()

    def after_fork(self) -> None:
        # What waits is the parent's, and the parent sends it.
        self._reset()

    @property
    def dropped(self) -> dict[str, int]:
        """How many changes were dropped, by reason: `full` (the buffer), `invalid` (no JSON),
        `too_large`, `refused` (a request that the service cannot read), `closed`, `unsent` (left at
        the end)."""
        with self._changed:
            return {reason: count for reason, count in self._dropped.items() if count}

    @property
    def counts(self) -> dict[str, int]:
        """What became of the changes that were sent: `read`, `recorded`, `unchanged`, `duplicate`,
        `expired`, `ignored` and `rejected`."""
        with self._changed:
            return dict(self._counts)

    @property
    def last_error(self) -> ApiError | None:
        """The error of the last attempt; None where it succeeded."""
        return self._error

    def record(
        self,
        op: Literal["insert", "create", "update", "replace", "delete"],
        entity: str,
        entity_id: str,
        *,
        before: Any = MISSING,
        after: Any = MISSING,
        id: str | None = None,
        schema_version: str | None = None,
        masked: Sequence[str] | None = None,
        **who: Unpack[Who],
    ) -> bool:
        """Takes a change of a document: False where it was dropped. The values are read before this
        returns, so they may be altered afterwards. `id` and `at` identify the change; by default a
        random id, and now. An actor needs the scope `recorder.actor_set`; without one a change
        bears the client's name."""
        change: dict[str, Any] = {
            "id": id or _random_id(),
            "op": op,
            "entity": entity,
            "entityId": entity_id,
            "schemaVersion": schema_version,
            "masked": masked,
        }
        for member, value in who.items():
            if member not in _MEMBERS:
                raise TypeError(f"record takes no {member}.")
            change[_MEMBERS[member]] = value
        change = {member: value for member, value in change.items() if value is not None}
        if before is not MISSING:
            change["before"] = before
        if after is not MISSING:
            change["after"] = after
        return self._take(change)

    def event(
        self,
        entity: str,
        *,
        entity_id: str | None = None,
        details: Mapping[str, Any] | None = None,
        id: str | None = None,
        **who: Unpack[Who],
    ) -> bool:
        """Takes something that happened and changed no document: a sign-in, an export. It is
        recorded as the creation of a document of its own, with `details` as its values. `who` are
        the other arguments of `record`.

        >>> recorder.event("sign-in", actor="Jane Doe", context={"ip": "203.0.113.7"})
        """
        id = id or _random_id()
        return self.record("create", entity, entity_id or id, after=details or {}, id=id, **who)

    def _flush(self, timeout: float) -> bool:
        until = time.monotonic() + timeout
        with self._changed:
            last = self._accepted
            self._awaited += 1
            self._changed.notify_all()
            try:
                while self._settled < last:
                    left = until - time.monotonic()
                    if left <= 0 or self._must_stop:
                        return False
                    self._changed.wait(left)
            finally:
                self._awaited -= 1
            return True

    def _close(self, timeout: float) -> bool:
        self._is_closed = True
        is_done = self._flush(timeout)
        with self._changed:
            left = 0 if self._must_stop else len(self._lines)
            self._must_stop = True
            self._dropped["unsent"] += left
            self._changed.notify_all()
        if left > 0:
            self._warn("unsent")
        return is_done

    def unsent(self) -> list[str]:
        """The changes that are not known to be committed, as lines that `annals import` takes."""
        with self._changed:
            return [line.decode().rstrip("\n") for line in self._lines]

    def _take(self, change: dict[str, Any]) -> bool:
        why = ""
        try:
            with self._changed:
                reason = self._append(change)
        except Exception as error:
            # A value without JSON, or an application's object that fails when it is written.
            reason, why = "invalid", f": {type(error).__name__}"
        if reason is not None:
            self._drop(reason, 1, why)
        return reason is None

    def _append(self, change: dict[str, Any]) -> Reason | None:
        """The reason why a change cannot be taken, or None."""
        if self._is_closed:
            return "closed"
        # Never earlier than the previous change: the history orders a document's changes by time.
        if "at" not in change:
            self._latest = max(self._latest, time.time_ns())
            change["at"] = _moment(self._latest)
        line = f"{_json.write(change)}\n".encode()
        if len(line) > MAX_CHANGE_BYTES:
            return "too_large"
        if len(self._lines) >= self._buffer or self._bytes + len(line) > self._buffer_bytes:
            return "full"
        self._lines.append(line)
        self._bytes += len(line)
        self._accepted += 1
        if self._thread is None:
            self._start()
        elif len(self._lines) in (1, self._batch):
            self._changed.notify_all()
        return None

    def _start(self) -> None:
        _exit_with_children()
        self._thread = threading.Thread(target=self._run, name="annals-recorder", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            # The interpreter ends, or has no thread left.
            self._thread = None
            warn_once("thread", f"The recorder cannot start its thread: {error}")

    def _drop(self, reason: Reason, count: int, why: str = "") -> None:
        """To be called without the lock: a handler of the application's log may record, too."""
        with self._changed:
            self._dropped[reason] += count
        self._warn(reason, why)

    @staticmethod
    def _warn(reason: Reason, why: str = "") -> None:
        warn_once(f"dropped {reason}", f"The recorder drops changes ({reason}){why}")

    def _run(self) -> None:
        # Takes a tenth of a second: while changes wait for others, and not when the first are sent.
        import httpx  # noqa: F401

        while (lines := self._next()) is not None:
            try:
                self._send(lines)
            except _Stopped:
                return
            except Exception:
                # A fault of the recorder itself neither ends it nor loses a change.
                logger.exception("The recorder failed and retries.")
                try:
                    self._sleep(MAX_DELAY)
                except _Stopped:
                    return

    def _next(self) -> list[bytes] | None:
        """The lines of the next request: those that come within the delay, or are awaited. None at
        the end."""
        with self._changed:
            while not self._lines:
                if self._must_stop:
                    return None
                self._changed.wait()
            until = time.monotonic() + self._delay
            while not (
                self._awaited
                or self._must_stop
                or len(self._lines) >= self._batch
                or self._bytes >= MAX_BATCH_BYTES
            ):
                left = until - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            if self._must_stop:
                return None
            taken: list[bytes] = []
            size = 0
            for line in islice(self._lines, self._batch):
                size += len(line)
                if taken and size > MAX_BATCH_BYTES:
                    break
                taken.append(line)
            return taken

    def _send(self, lines: list[bytes]) -> None:
        """Sends lines that stand first in the queue, until they are committed."""
        attempt = 0
        while True:
            attempt += 1
            try:
                self._committed(self._post(lines), lines)
                return
            except _TooLarge as error:
                return self._send_parts(lines, str(error))
            except _Refused as error:
                self._settle(len(lines))
                return self._drop("refused", len(lines), f": {error}")
            except ApiError as error:
                self._error = error
                delay = back_off(attempt, error.retry_after)
                if not self._is_away:
                    self._is_away = True
                    logger.warning("The recorder cannot send, and retries: %s", error)
                self._call(self._on_retry, error, delay)
            self._sleep(delay)

    def _send_parts(self, lines: list[bytes], why: str) -> None:
        """A request that passes a limit is divided. A change that passes it alone can never be
        recorded."""
        if len(lines) == 1:
            self._settle(1)
            self._drop("too_large", 1, f": {why}")
            return
        half = (len(lines) + 1) // 2
        self._send(lines[:half])
        self._send(lines[half:])

    def _post(self, lines: list[bytes]) -> Any:
        body, packed = b"".join(lines), None
        if len(body) >= MIN_PACKED_BYTES:
            body, packed = gzip.compress(body, 4, mtime=0), "gzip"
        request = Request(
            "POST",
            self._path,
            headers={"content-encoding": packed},
            body=body,
            content_type="application/x-ndjson",
            # Told apart from the same status of the token endpoint.
            is_result=lambda status, _: status in (400, 413, 415),
        )
        answer = self._driver.run(self._exchange.send(request), self._sleep)
        body_told = _json_of(answer.body)
        # 400 with `rejected`: every change was rejected, and the service stored them.
        if answer.status < 300 or (answer.status == 400 and _is_answer(body_told, len(lines))):
            if not _is_answer(body_told, len(lines)):
                raise ApiError("invalid_answer", "The answer is not that of a recorder.")
            return body_told
        fault = error_of_answer(
            answer.status, answer.headers, answer.body, request_id="", attempts=1
        )
        raise (_TooLarge if answer.status == 413 else _Refused)(str(fault))

    def _committed(self, answer: Any, lines: list[bytes]) -> None:
        self._error = None
        if self._is_away:
            self._is_away = False
            logger.info("The recorder sends again.")
        rejected = answer["rejected"]
        with self._changed:
            for name in COUNTS:
                self._counts[name] += answer[name]
            self._counts["rejected"] += len(rejected)
        self._settle(len(lines))
        for one in rejected:
            self._call(self._on_rejected, lines[one["index"]].decode().rstrip("\n"), one["reason"])

    def _settle(self, count: int) -> None:
        with self._changed:
            if self._must_stop:
                # They were counted as unsent, and an answer came after all.
                self._dropped["unsent"] -= count
            for _ in range(count):
                self._bytes -= len(self._lines.popleft())
            self._settled += count
            self._changed.notify_all()

    def _sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        with self._changed:
            while (left := until - time.monotonic()) > 0 and not self._must_stop:
                self._changed.wait(left)
            if self._must_stop:
                raise _Stopped

    def _call(self, function: Callable[..., object] | None, *values: Any) -> None:
        if function is None:
            return
        try:
            function(*values)
        except Exception as error:
            warn_once(
                "callback", f"A function given to the recorder failed: {type(error).__name__}"
            )


class Recorder(_Recorder):
    __doc__ = _Recorder.__doc__

    def flush(self, timeout: float = 60.0) -> bool:
        """Waits until all that was recorded before is committed, or dropped and counted; at most
        `timeout` seconds. Returns whether it is."""
        return self._flush(timeout)

    def close(self, timeout: float = 60.0) -> bool:
        """Takes no more changes, and waits as `flush`. What is left then is counted as `unsent`,
        and in `unsent()`."""
        return self._close(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncRecorder(_Recorder):
    """As Recorder; `flush` and `close` are awaited, and do not block the event loop."""

    async def flush(self, timeout: float = 60.0) -> bool:
        """As `flush` of Recorder."""
        import asyncio

        return await asyncio.to_thread(self._flush, timeout)

    async def close(self, timeout: float = 60.0) -> bool:
        """As `close` of Recorder."""
        import asyncio

        return await asyncio.to_thread(self._close, timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _Stopped(Exception):
    """The recorder was closed while it waited."""


class _TooLarge(Exception):
    """The request is beyond a limit of the recorder."""


class _Refused(Exception):
    """The recorder cannot read the request."""


def _random_id() -> str:
    return os.urandom(16).hex()


def _moment(nanoseconds: int) -> str:
    """RFC 3339 with milliseconds, as the service keeps them."""
    at = time.gmtime(nanoseconds // 1_000_000_000)
    milliseconds = nanoseconds // 1_000_000 % 1_000
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', at)}.{milliseconds:03}Z"


def _is_answer(answer: Any, lines: int) -> bool:
    """Whether a recorder answered, and not a proxy: what became of each line."""
    return (
        isinstance(answer, dict)
        and all(isinstance(answer.get(name), int) for name in COUNTS)
        and isinstance(answer.get("rejected"), list)
        and all(
            isinstance(one, dict)
            and isinstance(one.get("index"), int)
            and 0 <= one["index"] < lines
            and isinstance(one.get("reason"), str)
            for one in answer["rejected"]
        )
    )


def _json_of(body: bytes) -> Any:
    try:
        return read_json(body)
    except ApiError:
        return None


_recorders: weakref.WeakSet[_Recorder] = weakref.WeakSet()


@atexit.register
def _exit() -> None:
    """The process ends: what is left is sent, as long as each recorder may take."""
    begun = time.monotonic()
    for one in list(_recorders):
        one._close(max(0.0, begun + one._exit_timeout - time.monotonic()))


def _exit_with_children() -> None:
    """A child of multiprocessing ends without `atexit`."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing import util

        util.Finalize(None, _exit, exitpriority=100)
