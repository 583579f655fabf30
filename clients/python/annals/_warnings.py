"""Warnings that an application gets once."""

from __future__ import annotations

import logging

#: What the package has to say, without any value of the application.
logger = logging.getLogger("annals")
_warned: set[str] = set()


def warn_once(code: str, text: str) -> None:
    """Logs a warning the first time that it is called with `code`."""
    if code not in _warned:
        _warned.add(code)
        logger.warning(text)
