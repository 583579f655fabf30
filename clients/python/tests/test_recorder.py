"""The recorder under a failing server: it loses only what it counts, and records nothing twice."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from annals import Annals, Recorder, _warnings
from conftest import CREDENTIALS, RECORDER_URL, TENANT, URL, eventually
from faulty import Fault, FaultyRecorder


@pytest.fixture
def faulty() -> Iterator[FaultyRecorder]:
    one = FaultyRecorder(RECORDER_URL)
    yield one
    one.released.set()
    one.stop()


def counts(annals: Annals, entity: str, id: str | None = None) -> list[int]:
    """The counts of the entries that were recorded, oldest first."""
    q = f"entity:{entity}" + (f" entityId:{id}" if id else "")
    entries = list(annals.history.list(q, size=100))
    return [entry["paths"]["count"]["after"] for entry in reversed(entries)]


def update(recorder: Recorder, entity: str, id: str, count: int) -> bool:
    return recorder.record(
        "update", entity, id, before={"count": count - 1}, after={"count": count}
    )


def test_changes_share_requests_and_keep_their_order(
    annals: Annals, faulty: FaultyRecorder, unique: str
) -> None:
    recorder = annals.recorder(faulty.url)
    assert all(update(recorder, unique, "a", count) for count in range(1, 51))
    assert recorder.flush()
    assert len(faulty.requests) == 1
    assert recorder.counts == {
        **dict.fromkeys(("unchanged", "duplicate", "expired", "ignored", "rejected"), 0),
        "read": 50,
        "recorded": 50,
    }
    assert counts(annals, unique) == list(range(1, 51))
    assert recorder.close() and recorder.dropped == {} and recorder.unsent() == []
    assert update(recorder, unique, "a", 51) is False
    assert recorder.dropped == {"closed": 1}


def test_whatever_breaks_each_change_is_recorded_once_and_in_order(
    annals: Annals, faulty: FaultyRecorder, unique: str, chance: random.Random
) -> None:
    faults: list[Fault] = ["cut", "lose", 429, 500, 502, 503, 401, 403]
    faulty.fault = lambda lines: chance.choice(faults) if chance.random() < 0.4 else "none"
    recorder = annals.recorder(faulty.url, batch=20, delay=0)
    for count in range(1, 301):
        assert update(recorder, unique, f"b-{count % 3}", count)
    assert recorder.close(120), recorder.last_error
    assert recorder.dropped == {}
    # What was carried out and not answered is met again as a duplicate.
    assert recorder.counts["recorded"] + recorder.counts["duplicate"] == 300
    for rest in range(3):
        assert counts(annals, unique, f"b-{rest}") == [c for c in range(1, 301) if c % 3 == rest]
    sent = [line for lines in faulty.requests for line in lines]
    assert len(set(sent)) == 300 and len({json.loads(line)["id"] for line in sent}) == 300


def test_a_server_that_hangs_and_restarts_gets_what_was_recorded_meanwhile(
    annals: Annals, faulty: FaultyRecorder, unique: str
) -> None:
    faulty.fault = lambda lines: "hang"
    recorder = annals.recorder(faulty.url, delay=0)
    update(recorder, unique, "a", 1)
    eventually(lambda: len(faulty.requests) == 1)
    # The server is not released before: a recorder that waited for it would wait here.
    for count in range(2, 101):
        assert update(recorder, unique, "a", count)
    assert recorder.flush(0) is False
    faulty.stop()
    faulty.released.set()
    eventually(lambda: recorder.last_error is not None)
    faulty.fault = lambda lines: "none"
    faulty.start()
    assert recorder.close(120)
    assert counts(annals, unique) == list(range(1, 101)) and recorder.dropped == {}


def test_the_buffer_is_bounded_and_what_does_not_fit_is_counted(
    annals: Annals, faulty: FaultyRecorder, unique: str
) -> None:
    faulty.fault = lambda lines: 503
    recorder = annals.recorder(faulty.url, buffer=10)
    taken = [update(recorder, unique, "a", count) for count in range(1, 13)]
    assert taken == [True] * 10 + [False] * 2
    assert recorder.dropped == {"full": 2} and len(recorder.unsent()) == 10
    faulty.fault = lambda lines: "none"
    assert recorder.close()
    assert counts(annals, unique) == list(range(1, 11))


def test_the_bytes_of_the_buffer_are_bounded(
    annals: Annals, faulty: FaultyRecorder, unique: str
) -> None:
    faulty.fault = lambda lines: 503
    probe = annals.recorder(faulty.url)
    at = datetime.now(timezone.utc)
    probe.record("create", unique, "a", id="1", at=at, after="x" * 1_000)
    size = len(probe.unsent()[0]) + 1
    probe.close(0)
    for room, fits in ((3 * size, 3), (3 * size - 1, 2)):
        recorder = annals.recorder(faulty.url, buffer_bytes=room)
        for number in range(4):
            recorder.record("create", unique, "a", id=str(number), at=at, after="x" * 1_000)
        assert len(recorder.unsent()) == fits and recorder.dropped == {"full": 4 - fits}
        recorder.close(0)
        assert recorder.dropped == {"full": 4 - fits, "unsent": fits}


def test_a_request_that_is_too_large_is_divided_down_to_the_change_that_is(
    annals: Annals, faulty: FaultyRecorder, unique: str
) -> None:
    def fault(lines: list[str]) -> Fault:
        return 413 if len(lines) > 3 or any('"large"' in line for line in lines) else "none"

    faulty.fault = fault
    recorder = annals.recorder(faulty.url)
    for count in range(1, 11):
        update(recorder, unique, "large" if count == 5 else "a", count)
    assert recorder.close() and recorder.dropped == {"too_large": 1}
    assert counts(annals, unique) == [1, 2, 3, 4, 6, 7, 8, 9, 10]


def test_a_change_of_too_many_bytes_is_dropped_and_one_below_is_not(
    annals: Annals, faulty: FaultyRecorder, unique: str
) -> None:
    faulty.fault = lambda lines: 503
    recorder = annals.recorder(faulty.url)
    limit = 16 * 1024 * 1024
    at = datetime.now(timezone.utc)
    recorder.record("create", unique, "a", id="1", at=at, after="")
    room = limit - len(recorder.unsent()[0]) - 1
    assert recorder.record("create", unique, "a", id="1", at=at, after="x" * room)
    assert not recorder.record("create", unique, "a", id="1", at=at, after="x" * (room + 1))
    assert recorder.dropped == {"too_large": 1}
    recorder.close(0)


def test_what_can_never_be_recorded_is_told_and_blocks_nothing(
    annals: Annals, faulty: FaultyRecorder, unique: str
) -> None:
    rejected: list[tuple[str, str]] = []

    def on_rejected(line: str, reason: str) -> None:
        rejected.append((line, reason))
        raise RuntimeError("a fault of the application")

    recorder = annals.recorder(faulty.url, batch=1, delay=0, on_rejected=on_rejected)
    update(recorder, unique, "a", 1)
    # Alone in its request it is answered with 400.
    recorder.record("create", unique, "a", at="2099-01-01T00:00:00Z", after={"count": 2})
    update(recorder, unique, "a", 3)
    assert recorder.close()
    assert recorder.counts["rejected"] == 1 and recorder.counts["recorded"] == 2
    assert '"at":"2099-01-01T00:00:00Z"' in rejected[0][0] and rejected[0][1]
    assert counts(annals, unique) == [1, 3]


def test_a_request_that_the_service_cannot_read_is_dropped_and_counted(
    annals: Annals, faulty: FaultyRecorder, unique: str
) -> None:
    faulty.fault = lambda lines: 400 if len(faulty.requests) == 1 else "none"
    recorder = annals.recorder(faulty.url, batch=1, delay=0)
    for count in (1, 2, 3):
        update(recorder, unique, "a", count)
    assert recorder.close() and recorder.dropped == {"refused": 1}
    assert counts(annals, unique) == [2, 3]


def test_an_answer_that_is_not_a_recorders_is_no_success(
    annals: Annals, faulty: FaultyRecorder, unique: str
) -> None:
    faulty.fault = lambda lines: 200 if len(faulty.requests) < 3 else "none"
    errors: list[str] = []
    recorder = annals.recorder(faulty.url, delay=0, on_retry=lambda e, _: errors.append(e.type))
    update(recorder, unique, "a", 1)
    assert recorder.close() and errors == ["invalid_answer"] * 2
    assert counts(annals, unique) == [1] and recorder.dropped == {}


def test_a_token_that_is_refused_drops_nothing(
    annals: Annals, faulty: FaultyRecorder, unique: str
) -> None:
    # The token endpoint answers 400: the client has no such scope.
    refused = Annals(URL, TENANT, **CREDENTIALS, scope="no.such_scope", max_retries=0)
    recorder = refused.recorder(faulty.url, delay=0)
    update(recorder, unique, "a", 1)
    eventually(lambda: recorder.last_error is not None)
    assert recorder.last_error is not None and recorder.last_error.status == 400
    assert recorder.dropped == {} and len(recorder.unsent()) == 1
    recorder.close(0)
    assert recorder.dropped == {"unsent": 1} and faulty.requests == []


def test_a_handler_of_the_log_may_record(
    annals: Annals, faulty: FaultyRecorder, unique: str
) -> None:
    _warnings._warned.clear()
    faulty.fault = lambda lines: 503
    recorder = annals.recorder(faulty.url, buffer=1)
    wanted = threading.Event()

    class Recording(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            recorder.record("create", unique, "log", after={})

    handler = Recording()
    logging.getLogger("annals").addHandler(handler)
    try:
        handler.acquire()
        # Drops, and so logs, while this thread has the handler.
        thread = threading.Thread(target=lambda: (wanted.set(), update(recorder, unique, "a", 2)))
        update(recorder, unique, "a", 1)
        thread.start()
        assert wanted.wait(60)
        eventually(lambda: recorder.dropped.get("full", 0) > 0)
        recorder.record("create", unique, "log", after={})
        handler.release()
        thread.join(60)
        assert not thread.is_alive()
    finally:
        logging.getLogger("annals").removeHandler(handler)
        recorder.close(0)


def test_it_never_raises_into_the_application(
    annals: Annals, faulty: FaultyRecorder, unique: str
) -> None:
    class Broken:
        def __iter__(self) -> Any:
            raise RuntimeError

    circular: list[Any] = []
    circular.append(circular)
    recorder = annals.recorder(faulty.url)
    for value in (object(), float("nan"), Decimal("inf"), datetime(2026, 1, 1), circular, Broken()):
        assert recorder.record("create", unique, "a", after=value) is False
    assert recorder.dropped == {"invalid": 6}
    # Except for what no data can bring about: an argument that does not exist.
    with pytest.raises(TypeError, match="takes no actorId"):
        recorder.event("sign-in", actorId="u-1")  # type: ignore[call-arg]
    assert recorder.record("create", unique, "a", after=None)
    assert recorder.close()
    (entry,) = annals.history.list(f"entity:{unique}")
    assert entry["paths"] == {"": {"after": None}}


def test_values_are_read_before_record_returns(
    annals: Annals, faulty: FaultyRecorder, unique: str
) -> None:
    recorder = annals.recorder(faulty.url)
    document = {"count": 1}
    recorder.record("create", unique, "a", after=document)
    document["count"] = 2
    assert recorder.close() and counts(annals, unique) == [1]


def test_events_say_who_for_whom_and_from_where(annals: Annals, unique: str) -> None:
    with annals.recorder(RECORDER_URL) as recorder:
        recorder.event(
            unique,
            name="Orders of May",
            actor="Support",
            actor_id="u-1",
            on_behalf_of={"name": "Acme Ltd", "id": "c-1"},
            correlation_id="req-1",
            context={"ip": "203.0.113.7"},
            related=[{"entity": "customer", "entityId": "c-1"}],
            details={"rows": Decimal("1200.0")},
        )
        recorder.event(unique, entity_id="e-2")
    second, first = annals.history.list(f"entity:{unique}", context=True).page().items
    assert (second["entityId"], second["actor"], second["type"]) == ("e-2", "Shop", "create")
    assert (first["actor"], first["actorId"], first["correlationId"]) == ("Support", "u-1", "req-1")
    assert first["onBehalfOf"] == {"name": "Acme Ltd", "id": "c-1"}
    assert first["context"] == {"ip": "203.0.113.7"}
    assert str(first["paths"]["rows"]["after"]) == "1200.0"


def test_threads_share_a_recorder(annals: Annals, unique: str) -> None:
    recorder = annals.recorder(RECORDER_URL, batch=50, delay=0)

    def work(of: int) -> None:
        for count in range(1, 101):
            assert update(recorder, unique, f"t-{of}", count)

    threads = [threading.Thread(target=work, args=(of,)) for of in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorder.close()
    for of in range(4):
        assert counts(annals, unique, f"t-{of}") == list(range(1, 101))


def test_after_a_fork_the_child_begins_empty_and_both_send_their_own(
    annals: Annals, faulty: FaultyRecorder, unique: str
) -> None:
    faulty.fault = lambda lines: 503
    recorder = annals.recorder(faulty.url, delay=0)
    update(recorder, unique, "parent", 1)
    eventually(lambda: recorder.last_error is not None)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert recorder.unsent() == [] and recorder.last_error is None
            faulty.fault = lambda lines: "none"
            for count in (1, 2, 3):
                assert update(recorder, unique, "child", count)
            recorder._exchange.base_url = RECORDER_URL
            assert recorder.flush(60)
            assert annals.history.list(f"entity:{unique}").page().total == 3
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    faulty.fault = lambda lines: "none"
    assert recorder.close()
    assert counts(annals, unique, "parent") == [1]
    assert counts(annals, unique, "child") == [1, 2, 3]


def child_of_multiprocessing(recorder: Recorder, unique: str) -> None:
    update(recorder, unique, "a", 1)


def test_a_child_of_multiprocessing_sends_before_it_ends(annals: Annals, unique: str) -> None:
    recorder = annals.recorder(RECORDER_URL, delay=600, exit_timeout=60)
    process = multiprocessing.get_context("fork").Process(
        target=child_of_multiprocessing, args=(recorder, unique)
    )
    process.start()
    process.join()
    assert process.exitcode == 0
    assert counts(annals, unique) == [1]
    recorder.close()


PROGRAM = """
import sys
from annals import Annals
url, recorder_url, tenant, id, secret, entity = sys.argv[1:]
annals = Annals(url, tenant, client_id=id, client_secret=secret)
recorder = annals.recorder(recorder_url, delay=600, exit_timeout=60)
for count in range(1, 6):
    recorder.record("update", entity, "a", before={"count": count - 1}, after={"count": count})
"""


def test_a_program_that_ends_has_sent_everything(annals: Annals, unique: str) -> None:
    given = [URL, RECORDER_URL, TENANT, *CREDENTIALS.values(), unique]
    subprocess.run([sys.executable, "-c", PROGRAM, *given], check=True)
    assert counts(annals, unique) == [1, 2, 3, 4, 5]


def test_the_end_of_a_program_does_not_wait_longer_than_it_may(unique: str) -> None:
    # Nothing listens there.
    given = ["http://127.0.0.1:1", "http://127.0.0.1:1", TENANT, *CREDENTIALS.values(), unique]
    program = PROGRAM.replace("exit_timeout=60", "exit_timeout=0.1")
    program += "import atexit; atexit.register(lambda: print(recorder.dropped))"
    ended = subprocess.run(
        [sys.executable, "-c", program, *given], check=True, timeout=120, capture_output=True
    )
    # Functions that are registered later are called before, when nothing is dropped yet.
    assert ended.stdout == b"{}\n"
