from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

_MEMBERS = {
    "resolve",
    "trust_correlation",
    "address",
    "user_agent",
    "autocommit",
    "capture",
    "server",
}


def setting(name: str, default: Any = None) -> Any:
    """A member of the setting `ANNALS`. Raises ImproperlyConfigured where it has an unknown one."""
    given = getattr(settings, "ANNALS", {})
    unknown = sorted(set(given) - _MEMBERS)
    if unknown:
        raise ImproperlyConfigured(f"ANNALS has unknown members: {', '.join(unknown)}.")
    return given.get(name, default)
