from __future__ import annotations

import random
import time
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from annals import JsonNumber, WebhookError, verify_webhook
from annals._json import parse, write
from annals._streams import Events, Lines
from conftest import needs, read_file


@pytest.mark.parametrize(
    "text",
    [
        '{"10":1.10,"2":[-0,1E+400,9007199254740993]}',
        '"\\u00e9\\ud83c\\udf88\\ud800\\u0000"',
        "1" * 5_000,
        "-0.0",
        "1E-400",
        "[]",
        "null",
    ],
)
def test_what_is_read_is_written_as_it_was(text: str) -> None:
    assert write(parse(text)) == text


def test_a_number_beyond_every_decimal_keeps_its_text() -> None:
    text = "1E99999999999999999999"
    assert parse(text) == JsonNumber(text) and write([parse(text)]) == f"[{text}]"


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "-Infinity", "{", "01", ""])
def test_what_is_no_json_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)


def test_random_values_are_read_as_they_were_written(chance: random.Random) -> None:
    def value(depth: int) -> Any:
        kind = chance.randrange(8 if depth else 6)
        if kind == 0:
            return Decimal(chance.randrange(-(10**30), 10**30)).scaleb(
                chance.randrange(-50, 50)
            )
        if kind == 1:
            return chance.randrange(-(10**20), 10**20)
        if kind == 2:
            return "".join(chr(chance.randrange(1, 0x3000)) for _ in range(chance.randrange(9)))
        if kind < 6:
            return [None, True, False][kind - 3]
        if kind == 6:
            return [value(depth - 1) for _ in range(chance.randrange(5))]
        return {str(chance.random()): value(depth - 1) for _ in range(chance.randrange(5))}

    for _ in range(300):
        one = value(4)
        assert write(parse(write(one))) == write(one)
        assert parse(write(one)) == one


def test_times_and_ids_are_written_as_texts() -> None:
    at = datetime(2026, 5, 1, 12, 0, 0, 123000, timezone(timedelta(hours=2)))
    id = UUID("0190a7b2-5c1e-7000-8000-000000000001")
    assert write([at, at.date(), id]) == f'["2026-05-01T10:00:00.123000Z","2026-05-01","{id}"]'


def test_lines_and_events_are_the_same_however_they_are_cut(chance: random.Random) -> None:
    body = (
        "id: 1\nevent: change\ndata: {\r\ndata: é}\n\n: silence\n\ndata:x\n\ndata: cut off".encode()
    )
    for _ in range(50):
        cuts = sorted(chance.randrange(len(body)) for _ in range(chance.randrange(10)))
        pieces = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)])]
        events, lines = Events(), Lines()
        found = [event for piece in pieces for event in events.feed(piece)]
        assert found == [("change", "{\né}", "1"), ("message", "x", "1")]
        read = [line for piece in pieces for line in lines.feed(piece)] + list(lines.end())
        assert read == [line.removesuffix(b"\r") for line in body.split(b"\n")]


def headers(one: Mapping[str, Any]) -> dict[str, str]:
    return {
        "Webhook-Id": one["id"],
        "webhook-timestamp": str(one["timestamp"]),
        "webhook-signature": one["signature"],
    }


@pytest.mark.parametrize("one", read_file("webhooks.json"), ids=lambda one: one["algorithm"])
def test_a_webhook_is_verified_and_nothing_that_differs(one: dict[str, Any]) -> None:
    if one["algorithm"] == "ed25519":
        needs("cryptography")
    webhook = verify_webhook(one["body"].encode(), headers(one), one["key"])
    assert webhook.id == one["id"] and webhook.attempted_at.timestamp() == one["timestamp"]
    assert str(webhook.json()["data"]["price"]) == "19.900000000000000001"
    other = f"whsec_{'A' * 44}"
    assert verify_webhook(one["body"], headers(one), [other, one["key"]]).text == one["body"]
    for body, given, keys, fault in [
        (one["body"] + " ", headers(one), one["key"], "signature"),
        (one["body"], {**headers(one), "Webhook-Id": "x"}, one["key"], "signature"),
        (
            one["body"],
            {**headers(one), "webhook-signature": "v1,AAAA v1a,AAAA x"},
            one["key"],
            "signature",
        ),
        (one["body"], headers(one), other, "signature"),
        (one["body"], {}, one["key"], "headers"),
        (one["body"], {**headers(one), "webhook-timestamp": "1e9"}, one["key"], "headers"),
    ]:
        with pytest.raises(WebhookError) as caught:
            verify_webhook(body, given, keys)
        assert caught.value.fault == fault


def test_an_old_webhook_is_refused_on_both_sides_of_the_tolerance() -> None:
    one = read_file("webhooks.json")[0]
    for shift, passes in ((300, True), (-300, True), (301, False), (-301, False)):
        check = lambda: verify_webhook(  # noqa: E731
            one["body"], headers(one), one["key"], now=one["timestamp"] + shift
        )
        if passes:
            check()
        else:
            with pytest.raises(WebhookError) as caught:
                check()
            assert caught.value.fault == "timestamp"


@pytest.mark.parametrize("key", ["", "whsec_", "whsec_é", "whsec_a", "x"])
def test_a_key_without_a_valid_form_is_an_error(key: str) -> None:
    one = read_file("webhooks.json")[0]
    with pytest.raises(ValueError, match="whsec_ or whpk_"):
        verify_webhook(one["body"], headers(one), key, now=time.time())
