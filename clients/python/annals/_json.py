"""JSON without loss: numbers keep their digits, members their order."""

from __future__ import annotations

import datetime
import json
import re
import secrets
import uuid
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any


@dataclass(frozen=True, slots=True)
class JsonNumber:
    """A number whose exponent no `Decimal` can have, as its text."""

    text: str


def parse(text: str | bytes) -> Any:
    """The value of a JSON text. A number with a fraction or an exponent is a `Decimal`, any other
    an `int` (`-0`, and one of more than 600 digits, a `Decimal`). Raises ValueError for text that
    is not JSON, RecursionError where it is nested deeper than the interpreter allows."""
    return _decoder.decode(text if isinstance(text, str) else text.decode())


def write(value: Any) -> str:
    """The JSON text of a value, ASCII, without blanks. A `Decimal` keeps its digits; a `datetime`
    is RFC 3339 in UTC, a UUID its text. Raises TypeError for what has no JSON, ValueError for
    NaN, infinities, a circular value and a `datetime` without a time zone."""
    try:
        return _encoder.encode(value)
    except _HasNumbers:
        pass
    numbers: list[str] = []
    mark = ""

    def other(one: Any) -> str:
        nonlocal mark
        if not isinstance(one, (Decimal, JsonNumber)):
            return _text(one)
        # The encoder cannot emit a number verbatim, so a random mark takes its place.
        mark = mark or secrets.token_hex(16)
        numbers.append(_digits(one) if isinstance(one, Decimal) else one.text)
        return f"{mark}.{len(numbers) - 1}"

    text = json.dumps(value, default=other, allow_nan=False, separators=(",", ":"))
    if not numbers:
        return text
    return re.sub(f'"{mark}\\.([0-9]+)"', lambda match: numbers[int(match[1])], text)


class _HasNumbers(Exception):
    """There is a number that the encoder cannot write."""


def _plain(value: Any) -> str:
    if isinstance(value, (Decimal, JsonNumber)):
        raise _HasNumbers
    return _text(value)


_encoder = json.JSONEncoder(default=_plain, allow_nan=False, separators=(",", ":"))


def timestamp(moment: datetime.datetime | str) -> str:
    """RFC 3339 in UTC. A text stays as it is."""
    if isinstance(moment, str):
        return moment
    if moment.tzinfo is None:
        raise ValueError("A datetime needs a time zone: datetime.now(timezone.utc)")
    return moment.astimezone(datetime.timezone.utc).isoformat().replace("+00:00", "Z")


def _text(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        return timestamp(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    raise TypeError(f"A {type(value).__name__} has no JSON.")


def _digits(value: Decimal) -> str:
    if not value.is_finite():
        raise ValueError(f"{value} has no JSON.")
    return str(value)


def _integer(text: str) -> int | Decimal:
    # The interpreter refuses to read an int of many digits; an int has no negative zero.
    return Decimal(text) if len(text) > 600 or text == "-0" else int(text)


def _fraction(text: str) -> Decimal | JsonNumber:
    try:
        return Decimal(text)
    except InvalidOperation:
        return JsonNumber(text)


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is no JSON.")


_decoder = json.JSONDecoder(parse_int=_integer, parse_float=_fraction, parse_constant=_refuse)
