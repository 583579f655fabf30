"""An application's database whose rows say which `annals.who` they were written with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from conftest import DATABASE_URL


def execute(statement: str, *parameters: Any) -> list[Any]:
    with psycopg.connect(DATABASE_URL, autocommit=True) as connection:
        cursor = connection.execute(statement, parameters or None)
        return cursor.fetchall() if cursor.description else []


def create_table(name: str) -> None:
    """A table of ids, with a trigger that notes who changed which."""
    execute(
        f"""
        create table {name} (id int primary key, at timestamptz default now());
        create table {name}_who
          (number int generated always as identity, id int, op text, who text);
        create function {name}_note() returns trigger language plpgsql as $$ begin
          insert into {name}_who (id, op, who)
            values (coalesce(new.id, old.id), tg_op, current_setting('annals.who', true));
          return null;
        end $$;
        create trigger note after insert or update or delete on {name}
          for each row execute function {name}_note();
        """
    )


def noted(name: str) -> list[tuple[int, Any]]:
    """The ids that were changed, and who did it: the actor, or None. In their order."""
    rows = execute(f"select id, who from {name}_who order by number")
    return [(id, json.loads(who).get("actor") if who else None) for id, who in rows]


@contextmanager
def messages() -> Iterator[list[Any]]:
    """The messages `annals.who` that the log has of what the block commits."""
    slot = "annals_test_messages"
    execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", slot)
    execute("drop publication if exists annals_test; create publication annals_test")
    found: list[Any] = []
    try:
        yield found
        rows = execute(
            "select data from pg_logical_slot_get_binary_changes(%s, null, null,"
            " 'proto_version', '1', 'publication_names', 'annals_test', 'messages', 'true')",
            slot,
        )
        mark = b"annals.who\0"
        # A message: kind, flags, position, prefix, length, content.
        found += [json.loads(data.split(mark, 1)[1][4:]) for (data,) in rows if mark in data]
    finally:
        execute("select pg_drop_replication_slot(%s)", slot)


#: The role may do all but what `annals.who` needs, as the function is taken from it.
@contextmanager
def forbidden_role(name: str) -> Iterator[str]:
    execute(
        f"""
        create role {name} login password 'x';
        grant all on all tables in schema public to {name};
        grant all on all sequences in schema public to {name};
        revoke execute on function pg_catalog.pg_logical_emit_message(boolean, text, text, boolean)
          from public;
        """
        if _has_flush()
        else f"""
        create role {name} login password 'x';
        grant all on all tables in schema public to {name};
        grant all on all sequences in schema public to {name};
        revoke execute on function pg_catalog.pg_logical_emit_message(boolean, text, text)
          from public;
        """
    )
    try:
        yield name
    finally:
        signature = "boolean, text, text, boolean" if _has_flush() else "boolean, text, text"
        execute(
            f"""
            grant execute on function pg_catalog.pg_logical_emit_message({signature}) to public;
            drop owned by {name};
            drop role {name};
            """
        )


def _has_flush() -> bool:
    return bool(execute("select current_setting('server_version_num')::int >= 170000")[0][0])
