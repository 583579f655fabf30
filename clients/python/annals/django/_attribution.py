"""Sends `annals.who` before what Django writes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.db import connections, transaction
from django.db.backends.signals import connection_created

from annals import _who
from annals._context import current_text
from annals.django._settings import setting

#: By where they are and who we are there: rights differ by database and role.
_servers: dict[tuple[Any, ...], _who.Server] = {}


def attribute_connections() -> None:
    """Attributes all connections to PostgreSQL, those that are open and those to come."""
    connection_created.connect(_on_connected, dispatch_uid="annals")
    for connection in connections.all(initialized_only=True):
        _attribute(connection)


def _on_connected(connection: Any, **_: Any) -> None:
    _attribute(connection)


def _attribute(connection: Any) -> None:
    if connection.vendor != "postgresql":
        return
    # It reconnects with the same wrappers, and then nothing is set.
    for wrapper in connection.execute_wrappers:
        if isinstance(wrapper, _Attribution):
            wrapper.transaction.begins()
            return
    attribution = _Attribution(connection)
    # First: Django removes the last wrapper when the block of an `execute_wrapper` ends.
    connection.execute_wrappers.insert(0, attribution)
    # Django has no signal for the end of a transaction.
    for name in ("commit", "rollback"):
        setattr(connection, name, attribution.ending(getattr(connection, name)))


class _Attribution:
    """A wrapper of the statements of one connection."""

    def __init__(self, connection: Any) -> None:
        self.transaction = _who.Transaction()
        self._capture = bool(setting("capture", True))
        self._attributes_autocommit = bool(setting("autocommit", True))
        self._statement = _who.statement("%s", self._capture)
        of = connection.settings_dict
        key = tuple(str(of.get(name)) for name in ("HOST", "PORT", "NAME", "USER"))
        self._server = _servers.setdefault((*key, self._capture), _who.Server())

    def ending(self, end: Callable[[], None]) -> Callable[[], None]:
        @functools.wraps(end)
        def ended() -> None:
            try:
                end()
            finally:
                self.transaction.begins()

        return ended

    def __call__(
        self,
        execute: Callable[..., Any],
        sql: Any,
        params: Any,
        many: bool,
        context: dict[str, Any],
    ) -> Any:
        connection = context["connection"]
        # An object of the driver (psycopg.sql) is written with its connection.
        written = sql if isinstance(sql, str) else _text(sql, connection)
        self._notice_idle(connection)
        try:
            if not _who.writes(written):
                return execute(sql, params, many, context)
            if connection.in_atomic_block or not connection.autocommit:
                self._attribute(connection)
                return execute(sql, params, many, context)
            if not self._attributes_alone(written, connection):
                return execute(sql, params, many, context)
            with transaction.atomic(using=connection.alias):
                self._attribute(connection)
                return execute(sql, params, many, context)
        finally:
            if not self.transaction.is_untouched and _who.goes_back(written):
                self.transaction.goes_back()

    def _notice_idle(self, connection: Any) -> None:
        """Before the first statement of a transaction, and outside of them."""
        if not _is_idle(connection):
            return
        self.transaction.begins()
        if self._server.allows is None and current_text() is not None:
            self._probe(connection)

    def _attributes_alone(self, sql: str, connection: Any) -> bool:
        return (
            self._attributes_autocommit
            and self._server.allows is True
            and current_text() is not None
            and _who.is_row_statement(sql)
        )

    def _attribute(self, connection: Any) -> None:
        # A failed transaction has nothing to say, and Django has its own error for it.
        if self._server.allows is not True or _who.status(connection.connection) == _who.INERROR:
            return
        who = current_text()
        text = self.transaction.text_to_send(who)
        if text is None:
            return
        # The driver's cursor: an application that counts its statements does not find ours.
        with connection.connection.cursor() as cursor, connection.wrap_database_errors:
            cursor.execute(self._statement, (text,))
        self.transaction.sent(who)

    def _probe(self, connection: Any) -> None:
        """In a transaction of our own, while there is none of the application's."""
        raw = connection.connection
        try:
            with raw.cursor() as cursor:
                if connection.autocommit:
                    cursor.execute("begin")
                cursor.execute(_who.probe(self._capture))
            self._server.allows = True
        except Exception as error:
            self._server.refused(error, f"the database {connection.alias}")
        finally:
            # Where the connection is lost, the application's own statement says so.
            with suppress(Exception):
                if connection.autocommit:
                    with raw.cursor() as cursor:
                        cursor.execute("rollback")
                else:
                    raw.rollback()


def _is_idle(connection: Any) -> bool:
    """Whether the connection has no transaction."""
    raw = connection.connection
    return raw is None or _who.status(raw) == _who.IDLE


def _text(sql: Any, connection: Any) -> str:
    if isinstance(sql, bytes):
        return sql.decode("utf-8", "replace")
    try:
        return str(sql.as_string(connection.connection))
    except Exception:
        # Where it cannot be written, the driver's own error says so.
        return str(sql)
