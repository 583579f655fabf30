"""The errors of the package."""

from __future__ import annotations

import email.utils
import math
import time
from collections.abc import Mapping
from typing import Any

from annals import _json


class ApiError(Exception):
    """The error of every call that fails. `type` tells what happened; the text is for people.

    `type` is the service's own, such as `validation_violation`; the `errorcode` of a refused access
    token; the `error` of the token endpoint, such as `invalid_client`; or one of the client's:
    `connection_failed`, `timeout`, `invalid_answer`, `unknown`.
    """

    def __init__(
        self,
        type: str,
        message: str,
        *,
        status: int | None = None,
        details: list[dict[str, Any]] | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        attempts: int = 1,
        unsent: bool = False,
    ) -> None:
        super().__init__(message)
        self.type = type
        self.message = message
        #: The HTTP status; None where no answer came.
        self.status = status
        #: What is wrong with which field: `{"field", "message"}` each.
        self.details = details or []
        #: The id under which the service's log has the request.
        self.request_id = request_id
        #: The seconds after which the service asks to be called again.
        self.retry_after = retry_after
        #: How often the request was sent. With more than one, an earlier attempt may have arrived.
        self.attempts = attempts
        #: Whether there was no connection, so that nothing was sent.
        self.unsent = unsent


def error_of_answer(
    status: int, headers: Mapping[str, str], body: bytes, *, request_id: str, attempts: int
) -> ApiError:
    """The error of an answer that is no success. Its type is `unknown` where the body has none of
    the service's forms: the error message, the fault of an access token, the error of RFC 6749."""
    type, message, details = "unknown", f"The service answered {status}.", None
    try:
        told = _json.parse(body)
    except (ValueError, RecursionError):
        told = None
    if isinstance(told, dict):
        if isinstance(told.get("type"), str):
            type, message = told["type"], str(told.get("message", message))
            named = told.get("details")
            details = (
                [one for one in named if isinstance(one, dict)] if isinstance(named, list) else None
            )
        elif isinstance(told.get("fault"), dict):
            fault = told["fault"]
            detail = fault.get("detail")
            type = str(detail.get("errorcode")) if isinstance(detail, dict) else type
            message = str(fault.get("faultstring", message))
        elif isinstance(told.get("error"), str):
            type, message = told["error"], str(told.get("error_description", told["error"]))
    return ApiError(
        type,
        message,
        status=status,
        details=details,
        request_id=headers.get("x-request-id", request_id),
        retry_after=_seconds(headers.get("retry-after")),
        attempts=attempts,
    )


def _seconds(retry_after: str | None) -> float | None:
    """A Retry-After in seconds, written as a number or as a date."""
    if retry_after is None:
        return None
    if retry_after.isascii() and retry_after.isdigit():
        return int(retry_after[:9])
    try:
        at = email.utils.parsedate_to_datetime(retry_after).timestamp()
    except ValueError:
        return None
    return max(0, math.ceil(at - time.time()))
