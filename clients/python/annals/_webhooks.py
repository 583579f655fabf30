"""Checks that Annals sent a request (Standard Webhooks 1.0.0)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal

from annals import _json


class WebhookError(Exception):
    """A request that is not a webhook of Annals, or an old one. Answer it with 400."""

    def __init__(self, fault: Literal["headers", "timestamp", "signature"], message: str) -> None:
        super().__init__(message)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Webhook:
    """A request that Annals has signed."""

    #: The same for each attempt to deliver the same change: a receiver that keeps these ids handles
    #: each change once.
    id: str
    #: When this attempt was made.
    attempted_at: datetime
    #: The JSON text.
    text: str

    def json(self) -> Any:
        """The value of the text, with every digit of its numbers: `int` and `Decimal`."""
        return _json.parse(self.text)


def verify_webhook(
    body: bytes | str,
    headers: Mapping[str, str],
    keys: str | Iterable[str],
    *,
    now: float | None = None,
    tolerance: float = 300,
) -> Webhook:
    """Checks that Annals sent a request. `body` is the bytes as they came: a parsed body that is
    written again has another signature. `keys` is the secret (`whsec_…`) or the public key
    (`whpk_…`) of the subscription; during a change of keys the old and the new one. `now` is in
    seconds since 1970, `tolerance` in seconds.

    Raises WebhookError where Annals did not send it, ValueError where a key has no valid form, and
    ImportError for a public key without the package `cryptography`.
    """
    given = {name.lower(): value for name, value in headers.items()}
    id, timestamp, signatures = (
        _header(given, f"webhook-{name}") for name in ("id", "timestamp", "signature")
    )
    checks = [_check(key) for key in ([keys] if isinstance(keys, str) else keys)]
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 15):
        raise WebhookError("headers", "webhook-timestamp is not a number of seconds.")
    if abs((time.time() if now is None else now) - int(timestamp)) > tolerance:
        raise WebhookError(
            "timestamp", f"webhook-timestamp is more than {tolerance} seconds away from now."
        )
    content = body.encode() if isinstance(body, str) else bytes(body)
    signed = f"{id}.{timestamp}.".encode() + content
    for signature in signatures.split(" "):
        if any(is_from(signed, signature) for is_from in checks):
            at = datetime.fromtimestamp(int(timestamp), timezone.utc)
            return Webhook(id, at, content.decode("utf-8", "replace"))
    raise WebhookError("signature", "No signature of the request is from a key that was given.")


def _header(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name)
    if not isinstance(value, str) or value == "":
        raise WebhookError("headers", f"The header {name} is missing.")
    return value


def _check(key: str) -> Callable[[bytes, str], bool]:
    secret = _base64(key.removeprefix("whsec_")) if key.startswith("whsec_") else None
    public = _base64(key.removeprefix("whpk_")) if key.startswith("whpk_") else None
    if secret:

        def is_of_secret(content: bytes, signature: str) -> bool:
            version, _, value = signature.partition(",")
            expected = hmac.new(secret or b"", content, hashlib.sha256).digest()
            return version == "v1" and hmac.compare_digest(expected, _base64(value) or b"")

        return is_of_secret
    if public:
        return _check_of_public_key(public)
    raise ValueError("A key begins with whsec_ or whpk_ and goes on in base64.")


def _check_of_public_key(public: bytes) -> Callable[[bytes, str], bool]:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = Ed25519PublicKey.from_public_bytes(public)

    def is_of_key(content: bytes, signature: str) -> bool:
        version, _, value = signature.partition(",")
        if version != "v1a":
            return False
        try:
            key.verify(_base64(value) or b"", content)
        except InvalidSignature:
            return False
        return True

    return is_of_key


def _base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        return None
