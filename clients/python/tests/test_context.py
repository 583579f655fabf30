"""Contexts, their text, and which statements they precede."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import annals
from annals import _warnings
from annals._context import current_text, wire_text, without_context
from annals._who import Transaction, goes_back, is_row_statement, sqlstate, writes


@pytest.fixture(autouse=True)
def unwarned() -> Iterator[None]:
    _warnings._warned.clear()
    yield


def test_a_context_holds_in_its_block_and_replaces_the_one_around() -> None:
    assert annals.current_context() is None
    with annals.context(actor="Jane", actor_id=17, correlation_id="r-1"):
        assert json.loads(current_text() or "") == {
            "actor": "Jane",
            "actorId": "17",
            "correlationId": "r-1",
        }
        with annals.context(actor="cleanup"):
            assert current_text() == '{"actor":"cleanup"}'
        with without_context():
            assert current_text() is None and annals.set_context(actor="x") is False
        assert annals.current_context() == annals.Context(
            actor="Jane", actor_id=17, correlation_id="r-1"
        )
    assert current_text() is None


def test_set_context_merges_and_never_mixes_two_people() -> None:
    with annals.context(
        actor="Jane", actor_id="u-1", on_behalf_of="Acme", context={"ip": "x", "a": 1}
    ):
        annals.set_context(correlation_id="r-1", context={"a": 2})
        assert json.loads(current_text() or "") == {
            "actor": "Jane",
            "actorId": "u-1",
            "onBehalfOf": {"name": "Acme"},
            "correlationId": "r-1",
            "context": {"ip": "x", "a": 2},
        }
        annals.set_context(actor="John")
        assert json.loads(current_text() or "") == {
            "actor": "John",
            "correlationId": "r-1",
            "context": {"ip": "x", "a": 2},
        }


def test_a_decorator_opens_a_context_for_each_call() -> None:
    @annals.context(actor="job")
    def job(depth: int) -> str | None:
        """Says who."""
        if depth:
            annals.set_context(actor=f"depth {depth}")
            assert job(depth - 1) == f'{{"actor":"{f"depth {depth - 1}" if depth > 1 else "job"}"}}'
        return current_text()

    @annals.context(actor="task")
    async def task(name: str) -> str | None:
        annals.set_context(correlation_id=name)
        await asyncio.sleep(0)
        return current_text()

    assert job.__doc__ == "Says who."
    assert job(2) == '{"actor":"depth 2"}' and current_text() is None

    async def both() -> list[str | None]:
        return list(await asyncio.gather(task("a"), task("b")))

    assert asyncio.run(both()) == [
        '{"actor":"task","correlationId":"a"}',
        '{"actor":"task","correlationId":"b"}',
    ]
    with pytest.raises(TypeError, match="generator"):

        @annals.context(actor="x")
        def generate() -> Iterator[int]:
            yield 1


def test_tasks_have_the_context_and_threads_have_none() -> None:
    async def use() -> None:
        async with annals.context(actor="Jane"):
            task = asyncio.create_task(ask())
        assert await task == '{"actor":"Jane"}' and current_text() is None
        with annals.context(actor="Jane"):
            assert await asyncio.to_thread(current_text) == '{"actor":"Jane"}'

    async def ask() -> str | None:
        await asyncio.sleep(0)
        return current_text()

    asyncio.run(use())
    found: list[str | None] = []
    with annals.context(actor="Jane"):
        thread = threading.Thread(target=lambda: found.append(current_text()))
        thread.start()
        thread.join()
    assert found == [None]


def test_blocks_of_generators_that_end_out_of_order_leave_nobody_behind() -> None:
    def block(actor: str) -> Iterator[str | None]:
        with annals.context(actor=actor):
            yield current_text()

    jane, john = block("Jane"), block("John")
    assert [next(jane), next(john)] == ['{"actor":"Jane"}', '{"actor":"John"}']
    assert next(jane, None) is None and current_text() == '{"actor":"John"}'
    assert next(john, None) is None and current_text() is None


def test_a_block_may_end_in_another_thread_and_one_context_serve_many() -> None:
    job = annals.context(actor="job")
    barrier = threading.Barrier(2)
    found: list[str | None] = []

    def work() -> None:
        with job:
            barrier.wait(10)
            with job:
                found.append(current_text())
            barrier.wait(10)
            found.append(current_text())
        found.append(current_text())

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, found)) == ["None"] * 2 + ['{"actor":"job"}'] * 4

    def block() -> Iterator[None]:
        with annals.context(actor="Jane"):
            yield

    # As a web framework does with a dependency that is a plain generator.
    async def use() -> None:
        opened = block()
        await asyncio.to_thread(next, opened)
        assert current_text() is None
        assert await asyncio.to_thread(next, opened, "ended") == "ended"

    asyncio.run(use())


def test_a_mapping_that_raises_costs_the_actor_alone(caplog: pytest.LogCaptureFixture) -> None:
    class Lazy(Mapping[str, Any]):
        def __getitem__(self, _: str) -> Any:
            raise RuntimeError("detached")

        def __iter__(self) -> Iterator[str]:
            return iter(["name"])

        def __len__(self) -> int:
            return 1

    lazy = Lazy()
    for given in (annals.context(context=lazy), annals.context(on_behalf_of=lazy)):
        with given:
            assert current_text() is None
    (record,) = caplog.records
    assert "detached" not in record.message


def text(**members: Any) -> str | None:
    return wire_text(annals.Context(**members))


def test_the_text_is_ascii() -> None:
    written = text(actor="Ærø 🎈 \"'\\")
    assert written == '{"actor":"\\u00c6r\\u00f8 \\ud83c\\udf88 \\"\'\\\\"}' and written.isascii()


@pytest.mark.parametrize(
    ("fits", "too_much"),
    [
        ({"actor": "a" * 1_000}, {"actor": "a" * 1_001}),
        ({"actor": "🎈" * 1_000}, {"actor": "🎈" * 1_001}),
        ({"actor_id": "a" * 1_000}, {"actor_id": "a" * 1_001}),
        ({"on_behalf_of": {"id": "a" * 1_000}}, {"on_behalf_of": {"id": "a" * 1_001}}),
        ({"correlation_id": "a" * 200}, {"correlation_id": "a" * 201}),
        ({"context": {"a": "x" * 4_088}}, {"context": {"a": "x" * 4_089}}),
        ({"context": {"a": {"b": {"c": {}}}}}, {"context": {"a": {"b": {"c": {"d": {}}}}}}),
        ({"actor": "a"}, {"actor": ""}),
        ({"actor": "a"}, {"actor": "a\0"}),
        ({"actor": "a"}, {"actor": "\ud800"}),
        ({"actor_id": 7}, {"actor_id": True}),
        ({"actor_id": 7}, {"actor_id": 7.5}),
        ({"context": {"a": 1}}, {"context": {"a": "\ud800"}}),
        ({"context": {"a": 1}}, {"context": {"a": object()}}),
        ({"context": {"a": 1}}, {"context": [1]}),
        ({"on_behalf_of": "Acme"}, {"on_behalf_of": 7}),
    ],
)
def test_a_member_beyond_a_limit_is_left_out_with_one_warning(
    fits: dict[str, Any], too_much: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    assert text(**fits) is not None and not caplog.records
    kept = {"correlation_id": "kept"} if "correlation_id" not in too_much else {"actor": "kept"}
    for _ in range(2):
        assert text(**{**kept, **too_much}) == text(**kept)
        assert text(**too_much) is None
    (record,) = caplog.records
    assert record.levelno == logging.WARNING and "left out" in record.message
    # Never a value of the application.
    assert "aaa" not in record.message and "xxx" not in record.message


@pytest.mark.parametrize(
    "sql",
    [
        "insert into a values (1)",
        "  -- select\n /* /* nested */ */ UPDATE a set b = 1",
        "delete from a",
        "merge into a using b on true when matched then delete",
        "truncate a",
        "copy a (b) from stdin",
        "with x as (delete from a returning *) select * from x",
        "with x as (select 1) insert into a select * from x",
        "WITH x AS (SELECT ';') UPDATE a SET b = (SELECT 1)",
        ";insert into a values (1)",
    ],
)
def test_what_changes_rows_is_preceded(sql: str) -> None:
    assert writes(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "select 1",
        "select 'insert'; -- delete",
        "select * from a for update",
        "with x as (select * from a for no key update) select * from x",
        "with x as (select 'delete from a', \"update\", $$ insert into $$, $a$ merge $a$) select 1",
        "with x as (select 1 as update, a.delete from a) select 1",
        "with x as (select e'\\' insert into a', 1 /* delete */) select 1",
        "copy a to stdout",
        "copy (select 'x' from a) to stdout",
        "set transaction isolation level serializable",
        "show all",
        "lock table a",
        "savepoint a",
        "declare a cursor for select 1",
        "fetch a",
        "call a()",
        "do $$ begin delete from a; end $$",
        "create table a (b int)",
        "explain analyze delete from a",
        "",
        "'insert'",
    ],
)
def test_nothing_else_is(sql: str) -> None:
    assert not writes(sql)


@pytest.mark.parametrize(
    "part", [" ", "-- a\n", "-- -- ", ";", "(", "'", "e'\\", "/*", "$a$", "a$", '"', "x"]
)
def test_long_texts_are_read_in_one_pass(part: str) -> None:
    # One that went back over what it has read would not end.
    long = part * 200_000
    assert not writes(f"with {long}") and not goes_back(f"savepoint a; {long}")
    assert writes(f"delete from a; {long}")
    is_row_statement(f"delete from a; {long}")


def test_alone_goes_only_one_statement_of_rows() -> None:
    for sql in (
        "insert into a values (';')",
        "delete from a;",
        "with x as (select 1) delete from a",
    ):
        assert is_row_statement(sql), sql
    for sql in (
        "delete from a; delete from b",
        "truncate a",
        "copy a from stdin",
        "with x as (select 1) select 1",
    ):
        assert not is_row_statement(sql), sql


def test_what_ends_a_transaction_or_goes_back_in_it_is_noticed() -> None:
    for sql in (
        "commit",
        "ROLLBACK",
        "rollback to savepoint a",
        "insert into a values (1); commit",
        "prepare transaction 'a'",
        "start transaction",
        "begin",
        "end",
    ):
        assert goes_back(sql), sql
    for sql in (
        "savepoint a",
        "release savepoint a",
        "insert into a values ('; commit')",
        "prepare a as select 1",
    ):
        assert not goes_back(sql), sql


def test_a_transaction_is_told_once_until_something_changes() -> None:
    one = Transaction()
    assert one.text_to_send(None) is None and one.text_to_send("a") == "a"
    one.sent("a")
    assert one.text_to_send("a") is None and one.text_to_send("b") == "b"
    # A change without a context must not get the actor of the change before it.
    assert one.text_to_send(None) == "{}"
    one.goes_back()
    assert one.text_to_send("a") == "a" and one.text_to_send(None) == "{}"
    one.begins()
    assert one.text_to_send(None) is None


def test_the_sqlstate_of_an_error_is_found_however_it_is_wrapped() -> None:
    class Driver(Exception):
        sqlstate = "42883"

    class Wrapped(Exception):
        orig = Driver()

    caused = Exception()
    caused.__cause__ = Wrapped()
    assert [sqlstate(one) for one in (Driver(), Wrapped(), caused, Exception())] == [
        "42883"
    ] * 3 + [None]
