"""`annals.sqlalchemy` on a real PostgreSQL."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

import annals
from annals import _warnings
from application import create_table, execute, forbidden_role, messages, noted
from conftest import DATABASE_URL, needs

sqlalchemy = needs("sqlalchemy")
import annals.sqlalchemy  # noqa: E402
from sqlalchemy import create_engine, text  # noqa: E402
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column  # noqa: E402

DRIVERS = ["psycopg", "psycopg2"]


def url_of(driver: str, base: str = DATABASE_URL) -> str:
    return base.replace("postgres://", f"postgresql+{driver}://").replace(
        "postgresql://", f"postgresql+{driver}://"
    )


@pytest.fixture(params=DRIVERS)
def engine(request: pytest.FixtureRequest) -> Iterator[Any]:
    needs(request.param)
    made = create_engine(url_of(request.param), pool_size=1, max_overflow=0)
    annals.sqlalchemy.attribute(made)
    annals.sqlalchemy.attribute(made)
    yield made
    made.dispose()


@pytest.fixture
def table(unique: str) -> str:
    create_table(unique)
    return unique


def insert(connection: Any, table: str, id: int) -> None:
    connection.execute(text(f"insert into {table} (id) values (:id)"), {"id": id})


def test_the_changes_of_a_transaction_say_who(engine: Any, table: str) -> None:
    with annals.context(actor="Jane", context={"ip": "203.0.113.7"}):
        with engine.begin() as connection:
            assert connection.execute(text("select 1")).scalar() == 1
            insert(connection, table, 1)
            update = f"update {table} set at = now() where id = 1"
            assert connection.execute(text(update)).rowcount == 1
            assert connection.execute(text(f"{update} returning id")).scalar() == 1
    with engine.begin() as connection:
        insert(connection, table, 2)
    assert noted(table) == [(1, "Jane"), (1, "Jane"), (1, "Jane"), (2, None)]


def test_the_log_has_a_message_for_each_context_of_a_transaction(engine: Any, table: str) -> None:
    with engine.begin() as connection:
        insert(connection, table, 1)
    with messages() as found:
        with engine.begin() as connection:
            with annals.context(actor="Jane 🎈"):
                insert(connection, table, 2)
                insert(connection, table, 3)
            insert(connection, table, 4)
            insert(connection, table, 5)
            with annals.context(actor="John"):
                insert(connection, table, 6)
        with annals.context(actor="Jane"), engine.connect() as connection:
            connection.execute(text("select 1"))
    assert found == [{"actor": "Jane 🎈"}, {}, {"actor": "John"}]
    assert noted(table)[1:] == [(2, "Jane 🎈"), (3, "Jane 🎈"), (4, None), (5, None), (6, "John")]


def test_what_a_savepoint_or_a_transaction_takes_back_is_said_again(
    engine: Any, table: str
) -> None:
    with engine.connect() as connection:
        with connection.begin():
            savepoint = connection.begin_nested()
            with annals.context(actor="Jane"):
                insert(connection, table, 1)
            savepoint.rollback()
            insert(connection, table, 2)
            savepoint = connection.begin_nested()
            with annals.context(actor="John"):
                insert(connection, table, 3)
                savepoint.commit()
                insert(connection, table, 4)
                connection.execute(text("savepoint a"))
                connection.execute(text("rollback to savepoint a"))
                insert(connection, table, 5)
        with annals.context(actor="Jane"):
            transaction = connection.begin()
            insert(connection, table, 6)
            transaction.rollback()
            with connection.begin():
                insert(connection, table, 7)
        with connection.begin():
            insert(connection, table, 8)
    expected = [(2, None), (3, "John"), (4, "John"), (5, "John"), (7, "Jane"), (8, None)]
    assert noted(table) == expected


def test_a_flush_of_a_session_says_who(engine: Any, table: str) -> None:
    class Base(DeclarativeBase):
        pass

    class Row(Base):
        __tablename__ = table
        id: Mapped[int] = mapped_column(primary_key=True)

    with Session(engine) as session:
        assert session.get(Row, 1) is None
        # The context of the change counts, not that of the begin of its transaction.
        with annals.context(actor="Jane", actor_id=17):
            session.add_all([Row(id=1), Row(id=2)])
            session.commit()
    assert noted(table) == [(1, "Jane"), (2, "Jane")]


def test_what_fails_fails_as_without_us(engine: Any, table: str) -> None:
    with annals.context(actor="Jane"):
        with pytest.raises(sqlalchemy.exc.ProgrammingError, match="does not exist"):
            with engine.begin() as connection:
                connection.execute(text("insert into no_such_table values (1)"))
        # A setting in front of it would break it.
        with engine.begin() as connection:
            connection.execute(text("set transaction isolation level serializable"))
            connection.execute(text(f"lock table {table}"))
            insert(connection, table, 1)
    assert noted(table) == [(1, "Jane")]


def test_what_a_listener_of_connect_has_set_stays_and_a_failed_transaction_says_so(
    table: str,
) -> None:
    engine = create_engine(url_of("psycopg"))
    annals.sqlalchemy.attribute(engine)

    @sqlalchemy.event.listens_for(engine, "connect")
    def connected(raw: Any, _: Any) -> None:
        raw.execute("set application_name = 'shop'")

    with annals.context(actor="Jane"), engine.connect() as connection:
        assert connection.execute(text("show application_name")).scalar() == "shop"
        connection.commit()
        with pytest.raises(sqlalchemy.exc.ProgrammingError):
            connection.execute(text("select nothing"))
        with pytest.raises(sqlalchemy.exc.InternalError) as caught:
            insert(connection, table, 1)
        assert "insert" in (caught.value.statement or "")
        connection.rollback()
        insert(connection, table, 2)
        connection.commit()
    engine.dispose()
    assert noted(table) == [(2, "Jane")]


def test_a_connection_that_streams_results_is_attributed(engine: Any, table: str) -> None:
    with annals.context(actor="Jane"), engine.connect() as connection:
        streaming = connection.execution_options(stream_results=True)
        with streaming.begin():
            rows = streaming.execute(text("select generate_series(1, 3)"))
            assert next(rows) == (1,)
            statement = text(f"insert into {table} (id) values (1)")
            streaming.execute(statement, execution_options={"stream_results": False})
            assert list(rows) == [(2,), (3,)]
    assert noted(table) == [(1, "Jane")]


def test_autocommit_is_left_alone(engine: Any, table: str) -> None:
    with annals.context(actor="Jane"):
        with engine.connect() as connection:
            own = connection.execution_options(isolation_level="AUTOCOMMIT")
            insert(own, table, 1)
        with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            insert(connection, table, 2)
        with engine.begin() as connection:
            insert(connection, table, 3)
    assert noted(table) == [(1, None), (2, None), (3, "Jane")]


def test_without_capture_there_is_no_message(table: str) -> None:
    engine = create_engine(url_of("psycopg"))
    annals.sqlalchemy.attribute(engine, capture=False)
    with messages() as found, annals.context(actor="Jane"), engine.begin() as connection:
        insert(connection, table, 1)
    engine.dispose()
    assert found == [] and noted(table) == [(1, "Jane")]


def test_a_server_that_refuses_is_asked_once_and_never_again(
    table: str, unique: str, caplog: pytest.LogCaptureFixture
) -> None:
    _warnings._warned.clear()
    with forbidden_role(f"{unique}_role") as role:
        url = sqlalchemy.engine.make_url(url_of("psycopg")).set(username=role, password="x")
        engine = create_engine(url)
        annals.sqlalchemy.attribute(engine)
        for id in (1, 2):
            with annals.context(actor="Jane"), engine.begin() as connection:
                insert(connection, table, id)
        engine.dispose()
    assert noted(table) == [(1, None), (2, None)]
    (record,) = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert "42501" in record.message and "pg_logical_emit_message" in record.message


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_an_async_engine_has_the_context_of_its_task(table: str, driver: str) -> None:
    needs("greenlet")
    needs(driver)
    from sqlalchemy.ext.asyncio import create_async_engine

    async def use() -> None:
        engine = create_async_engine(url_of(driver), pool_size=2)
        annals.sqlalchemy.attribute(engine)

        async def work(id: int) -> None:
            with annals.context(actor=f"actor {id}"):
                async with engine.begin() as connection:
                    await connection.execute(text("select pg_sleep(0.01)"))
                    await connection.execute(text(f"insert into {table} (id) values ({id})"))

        await asyncio.gather(*(work(id) for id in range(6)))
        await engine.dispose()

    asyncio.run(use())
    assert sorted(noted(table)) == [(id, f"actor {id}") for id in range(6)]


def test_another_database_and_another_thing() -> None:
    annals.sqlalchemy.attribute(create_engine("sqlite://"))
    with pytest.raises(TypeError, match="Engine"):
        annals.sqlalchemy.attribute("postgresql://")


def test_the_role_is_restored() -> None:
    assert execute("select count(*) from pg_roles where rolname like 't%%_role'") == [(0,)]
