"""Hands `annals.context` to PostgreSQL from SQLAlchemy 2, so that recorded changes say who.

>>> engine = create_engine("postgresql+psycopg://…")
>>> annals.sqlalchemy.attribute(engine)
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from sqlalchemy import event, text
from sqlalchemy.engine import Connection, Engine

from annals import _who
from annals._context import current_text
from annals._warnings import warn_once

_TRANSACTION = "annals.transaction"
_ATTRIBUTION = "_annals_attribution"


def attribute(engine: Any, *, capture: bool = True) -> None:
    """Attributes what an engine writes in a transaction: before the first flush or DML statement of
    it, and once more where the context has changed since.

    `engine` is an Engine or an AsyncEngine. With `capture=False` changes are attributed for
    triggers (`annals outbox`) alone, and not for `annals capture`. Connections in AUTOCOMMIT are
    left alone. An engine of another database is too, with a warning.
    """
    engine = getattr(engine, "sync_engine", engine)
    if not isinstance(engine, Engine):
        raise TypeError(f"attribute takes an Engine or an AsyncEngine, and not {engine!r}.")
    if engine.dialect.name != "postgresql":
        warn_once(
            f"dialect {engine.dialect.name}",
            f"attribute does nothing for {engine.dialect.name}: Annals reads PostgreSQL.",
        )
        return
    if hasattr(engine, _ATTRIBUTION):
        return
    attribution = _Attribution(_who.Server(), capture, engine.url.render_as_string())
    setattr(engine, _ATTRIBUTION, attribution)
    event.listen(engine, "begin", attribution.begins)
    event.listen(engine, "begin_twophase", attribution.begins_twophase)
    event.listen(engine, "rollback_savepoint", attribution.goes_back)
    event.listen(engine, "before_cursor_execute", attribution.before)
    event.listen(engine, "after_cursor_execute", attribution.after)


class _Attribution:
    def __init__(self, server: _who.Server, capture: bool, name: str) -> None:
        self._server = server
        self._capture = capture
        self._name = name
        self._statement = text(_who.statement(":who", capture))

    def begins(self, connection: Connection) -> None:
        connection.info[_TRANSACTION] = _who.Transaction()
        if self._server.allows is None:
            self._probe(connection)

    def begins_twophase(self, connection: Connection, xid: Any) -> None:
        self.begins(connection)

    def goes_back(self, connection: Connection, name: str, context: Any) -> None:
        self._transaction(connection).goes_back()

    def before(
        self,
        connection: Connection,
        cursor: Any,
        statement: str,
        parameters: Any,
        context: Any,
        executemany: bool,
    ) -> None:
        transaction = self._transaction(connection)
        if self._server.allows is not True or not _who.writes(statement):
            return
        who = current_text()
        sent = transaction.text_to_send(who)
        if sent is None or _is_autocommit(connection):
            return
        if _who.status(connection.connection.dbapi_connection) == _who.INERROR:
            return
        # Marked first: the statement comes here too.
        transaction.sent(who)
        # A cursor of the server would cost two more round trips.
        plain = {"stream_results": False}
        connection.execute(self._statement, {"who": sent}, execution_options=plain).close()

    def after(
        self,
        connection: Connection,
        cursor: Any,
        statement: str,
        parameters: Any,
        context: Any,
        executemany: bool,
    ) -> None:
        transaction = self._transaction(connection)
        if not transaction.is_untouched and _who.goes_back(statement):
            transaction.goes_back()

    def _transaction(self, connection: Connection) -> _who.Transaction:
        transaction: _who.Transaction = connection.info.setdefault(_TRANSACTION, _who.Transaction())
        return transaction

    def _probe(self, connection: Connection) -> None:
        """Before the application's transaction has begun at the server."""
        if _is_autocommit(connection):
            return
        raw = connection.connection.dbapi_connection
        assert raw is not None
        # Such as one in which a listener of `connect` has set something.
        if _who.status(raw) not in (None, _who.IDLE):
            return
        try:
            cursor = raw.cursor()
            try:
                cursor.execute(_who.probe(self._capture))
            finally:
                cursor.close()
            self._server.allows = True
        except Exception as error:
            self._server.refused(error, self._name)
        finally:
            # Where the connection is lost, the application's own statement says so.
            with suppress(Exception):
                raw.rollback()


def _is_autocommit(connection: Connection) -> bool:
    raw = connection.connection.dbapi_connection
    return bool(getattr(raw, "autocommit", False))
