"""Retries, tokens and the feed, step by step: answers are scripted, and nothing is sent."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from annals import Annals, ApiError
from annals._drive import SyncDriver
from annals._errors import error_of_answer
from annals._exchange import (
    Answer,
    ClientTokens,
    Exchange,
    Exclusive,
    GivenTokens,
    Request,
    Send,
    Sleep,
    Steps,
    back_off,
)
from annals._operation import Core
from annals._streams import Tail
from conftest import CREDENTIALS, RECORDER_URL, TENANT, URL

Script = list[Answer | ApiError]


def failed(unsent: bool) -> ApiError:
    return ApiError("connection_failed", "cut", unsent=unsent)


def answer(status: int, body: Any = None, **headers: str) -> Answer:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, names, json.dumps(body or {}).encode())


class Run:
    """Carries out steps by a script, and notes what was sent and slept."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.sent: list[Send] = []
        self.slept: list[float] = []

    def __call__(self, steps: Steps[Any]) -> Any:
        try:
            effect = next(steps)
            while True:
                if isinstance(effect, Send):
                    self.sent.append(effect)
                    told = self.script.pop(0)
                    effect = steps.throw(told) if isinstance(told, ApiError) else steps.send(told)
                elif isinstance(effect, Sleep):
                    self.slept.append(effect.seconds)
                    effect = steps.send(None)
                elif isinstance(effect, Exclusive):
                    effect = steps.send(self(effect.steps()))
                else:
                    effect = steps.send(effect.function())
        except StopIteration as end:
            return end.value


def exchange(**options: Any) -> Exchange:
    return Exchange(
        "http://x", **{"timeout": 1, "max_retries": 4, "max_retry_delay": 60, **options}
    )


def with_token(**options: Any) -> Exchange:
    one = exchange(**options)
    one.tokens = GivenTokens("t")
    return one


FAULTS: dict[str, Answer | ApiError] = {
    "429": answer(429),
    "502": answer(502),
    "503": answer(503),
    "500": answer(500),
    "400": answer(400),
    "connection broke off": failed(unsent=False),
    "no connection": failed(unsent=True),
    "time-out": ApiError("timeout", "late"),
}
REPEATED = {
    "GET": {"429", "502", "503", "connection broke off", "no connection"},
    "PUT": {"429", "502", "503", "connection broke off", "no connection"},
    "DELETE": {"429", "502", "503", "connection broke off", "no connection"},
    "POST": {"429", "no connection"},
    "PATCH": {"429", "no connection"},
}


@pytest.mark.parametrize("method", REPEATED)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_request_is_repeated_only_where_that_is_safe(method: Any, fault: str) -> None:
    run = Run([FAULTS[fault], answer(200, {"a": 1})])
    steps = with_token().send(Request(method, "/a"))
    if fault in REPEATED[method]:
        assert run(steps).json() == {"a": 1} and len(run.slept) == 1
        # The service's log has all attempts under one id.
        assert len({one.headers["x-request-id"] for one in run.sent}) == 1
    else:
        with pytest.raises(ApiError) as caught:
            run(steps)
        assert len(run.sent) == 1 and caught.value.attempts == 1


def test_attempts_end_with_the_retries_that_there_may_be() -> None:
    for retries in (0, 1, 4):
        run = Run([answer(503)] * (retries + 1))
        with pytest.raises(ApiError) as caught:
            run(with_token(max_retries=retries).send(Request("GET", "/a")))
        assert caught.value.attempts == len(run.sent) == retries + 1


def test_a_retry_after_is_waited_for_up_to_the_limit() -> None:
    run = Run([answer(429, retry_after="60"), answer(200)])
    run(with_token().send(Request("POST", "/a")))
    assert 60 <= run.slept[0] <= 61
    run = Run([answer(429, retry_after="61")])
    with pytest.raises(ApiError) as caught:
        run(with_token().send(Request("POST", "/a")))
    assert caught.value.retry_after == 61 and run.slept == []


def test_delays_grow_and_are_bounded() -> None:
    for attempt, longest in ((1, 0.25), (2, 0.5), (3, 1), (6, 8), (1_000, 8)):
        delays = [back_off(attempt, None) for _ in range(100)]
        assert longest / 2 <= min(delays) and max(delays) <= longest
    assert all(3 <= back_off(50, 3) <= 4 for _ in range(100))


def test_a_token_is_fetched_once_renewed_and_given_up_where_it_is_refused() -> None:
    one = exchange()
    one.tokens = ClientTokens(one, "id", "secret & more", "a b")
    token = answer(200, {"access_token": "t1", "expires_in": 600})
    second = answer(200, {"access_token": "t2", "expires_in": 600})
    run = Run(
        [
            token,
            answer(200),
            answer(200),
            answer(401),
            second,
            answer(200),
            answer(401),
            answer(401),
        ]
    )
    for _ in range(3):
        run(one.send(Request("GET", "/a")))
    assert [sent.headers.get("authorization") for sent in run.sent] == [
        None,
        "Bearer t1",
        "Bearer t1",
        "Bearer t1",
        None,
        "Bearer t2",
    ]
    form = "grant_type=client_credentials&client_id=id&client_secret=secret+%26+more&scope=a+b"
    assert run.sent[0].body == form.encode() and run.sent[0].url == "http://x/oauth/token"
    # A client that is refused with a new token too is refused.
    run.script = [answer(401), answer(200, {"access_token": "t3", "expires_in": 600}), answer(401)]
    with pytest.raises(ApiError) as caught:
        run(one.send(Request("GET", "/a")))
    assert caught.value.status == 401 and run.script == []


def test_a_token_that_ends_is_renewed_before_and_serves_while_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr("annals._exchange.time.monotonic", lambda: now[0])
    one = exchange(max_retries=0)
    one.tokens = ClientTokens(one, "id", "secret", None)
    run = Run([answer(200, {"access_token": "t1", "expires_in": 1000})])
    assert run(one.tokens.get()) == "t1"
    now[0] = 1939.9
    assert run(one.tokens.get()) == "t1" and len(run.sent) == 1
    now[0] = 1940.1
    run.script = [answer(503)]
    assert run(one.tokens.get()) == "t1" and len(run.sent) == 2
    now[0] = 2000.1
    run.script = [answer(503)]
    with pytest.raises(ApiError):
        run(one.tokens.get())
    run.script = [answer(200, {"access_token": "t2", "expires_in": 1000})]
    assert run(one.tokens.get()) == "t2"
    run.script = [answer(200, {"access_token": "t2"})]
    one.tokens.forget("t2")
    with pytest.raises(ApiError) as caught:
        run(one.tokens.get())
    assert caught.value.type == "invalid_answer"


@pytest.mark.parametrize(
    ("body", "type", "message"),
    [
        (
            {"type": "conflict", "message": "It is there.", "details": [1, {"field": "a"}]},
            "conflict",
            "It is there.",
        ),
        ({"fault": {"faultstring": "Old", "detail": {"errorcode": "expired"}}}, "expired", "Old"),
        ({"error": "invalid_client", "error_description": "Who?"}, "invalid_client", "Who?"),
        ({"error": "invalid_client"}, "invalid_client", "invalid_client"),
        ([], "unknown", "The service answered 500."),
        ("<html>", "unknown", "The service answered 500."),
    ],
)
def test_an_error_has_the_forms_of_the_service(body: Any, type: str, message: str) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    error = error_of_answer(500, {}, text.encode(), request_id="r", attempts=2)
    assert (error.type, str(error), error.request_id, error.attempts) == (type, message, "r", 2)


def test_a_success_that_is_no_json_is_an_error() -> None:
    run = Run([Answer(200, {}, b"<html>")])
    with pytest.raises(ApiError) as caught:
        run(with_token().send(Request("GET", "/a"))).json()
    assert caught.value.type == "invalid_answer"


class Breaking(httpx.HTTPTransport):
    """Breaks each connection of the feed: before it is there, or after its first change."""

    def __init__(self) -> None:
        super().__init__()
        self.connections = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/feed"):
            return super().handle_request(request)
        self.connections += 1
        if self.connections % 4 == 2:
            raise httpx.ConnectError("none")
        if self.connections % 4 == 0:
            return httpx.Response(503, json={"type": "service_unavailable", "message": "away"})
        response = super().handle_request(request)

        class Cut(httpx.SyncByteStream):
            def __iter__(self) -> Iterator[bytes]:
                for piece in response.stream:  # type: ignore[union-attr]
                    yield piece
                    if b"event: change" in piece:
                        raise httpx.ReadError("cut")

            def close(self) -> None:
                response.close()

        return httpx.Response(response.status_code, headers=response.headers, stream=Cut())


def test_the_feed_goes_on_after_faults_of_every_kind_and_misses_nothing(
    annals: Annals, unique: str
) -> None:
    transport = Breaking()
    client = Annals(URL, TENANT, **CREDENTIALS, http_client=httpx.Client(transport=transport))
    recorder = annals.recorder(RECORDER_URL, delay=0)
    lost: list[ApiError] = []
    changes = client.history.tail(f"entity:{unique}", after="start", on_lost=lost.append)
    seen: dict[str, None] = {}
    for number in range(6):
        recorder.record("create", unique, str(number), after={})
        while len(seen) <= number:
            seen[next(changes)["entityId"]] = None
    recorder.close()
    changes.close()
    assert list(seen) == [str(number) for number in range(6)]
    assert transport.connections > 5 and lost


def tail(**options: Callable[..., object]) -> Tail:
    given = {"on_cursor": None, "on_caught_up": None, "on_lost": None, "on_reset": None, **options}
    return Tail(Core("t", with_token()), None, None, None, **given)  # type: ignore[arg-type]


def test_a_restored_database_is_told_and_read_again() -> None:
    resets: list[str] = []
    cursors: list[str] = []
    one = tail(on_reset=resets.append, on_cursor=cursors.append)
    position = b'id: c1\nevent: position\ndata: {"position":1}\n\n'
    reset = b'id: c0\nevent: reset\ndata: {"oldest":"c0"}\n\n'
    assert list(one.changes(position + reset)) == []
    assert (cursors, resets) == (["c1"], ["c0"])
    run = Run([Answer(200, {}, stream=object())])
    run(one.connect())
    assert run.sent[0].headers["last-event-id"] == "c0"


def test_which_faults_end_the_feed() -> None:
    began = tail()
    list(began.changes(b"id: c1\nevent: position\ndata: {}\n\n"))
    for error in (
        failed(True),
        ApiError("timeout", ""),
        ApiError("x", "", status=429),
        ApiError("x", "", status=503),
    ):
        began.lost(error)
        tail(on_lost=lambda _: None).lost(error)
        with pytest.raises(ApiError):
            tail().lost(error)
    for error in (
        ApiError("invalid_answer", ""),
        *(ApiError("x", "", status=s) for s in (400, 401, 403, 410)),
    ):
        for one in (began, tail(on_lost=lambda _: None)):
            with pytest.raises(ApiError):
                one.lost(error)
    assert began.delay() == 0 and began.delay() > 0


def test_a_fork_leaves_the_connections_of_its_parent(chance: random.Random) -> None:
    driver = SyncDriver()
    driver._opened(httpx)
    parent = driver._client
    driver.after_fork()
    assert parent is not None and driver._client is None
    assert driver._opened(httpx) is not parent
    driver.close()
    parent.close()
