"""A forked child inherits memory, but no threads, and must not use the parent's connections."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forked(Protocol):
    def after_fork(self) -> None:
        """Forgets, in the child, what belongs to the parent."""


_known: weakref.WeakSet[Forked] = weakref.WeakSet()


def after_fork(one: Forked) -> None:
    """Calls its `after_fork` in each child, for as long as it lives."""
    _known.add(one)


def _in_child() -> None:
    for one in list(_known):
        one.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
