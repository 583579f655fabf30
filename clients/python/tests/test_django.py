"""`annals.django` on a real PostgreSQL, and its admin on a real server."""

from __future__ import annotations

import asyncio
import logging
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

import annals
from annals import Annals, _warnings
from application import create_table, execute, forbidden_role, messages, noted
from conftest import CREDENTIALS, DATABASE_URL, RECORDER_URL, TENANT, URL, needs

django = needs("django")

import django.conf  # noqa: E402

PARTS = urlsplit(DATABASE_URL)
DATABASE = {
    "ENGINE": "django.db.backends.postgresql",
    "NAME": PARTS.path[1:],
    "HOST": PARTS.hostname,
    "PORT": PARTS.port,
    "USER": PARTS.username,
    "PASSWORD": PARTS.password or "",
}


def resolve(request: Any) -> Any:
    """What the tests set as the resolve of a request."""
    return request.who(request)


django.conf.settings.configure(
    SECRET_KEY="x",
    DATABASES={"default": DATABASE},
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django.contrib.admin",
        "annals.django",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
    ROOT_URLCONF="test_django",
    ALLOWED_HOSTS=["*"],
    USE_TZ=True,
    ANNALS={
        "resolve": "test_django.resolve",
        "server": {"base_url": URL, "tenant": TENANT, **CREDENTIALS},
    },
)
django.setup()

from django.contrib import admin  # noqa: E402
from django.contrib.auth.models import AnonymousUser, User  # noqa: E402
from django.core.exceptions import ImproperlyConfigured, PermissionDenied  # noqa: E402
from django.db import connection, connections, models, transaction  # noqa: E402
from django.http import HttpResponse  # noqa: E402
from django.test import AsyncRequestFactory, RequestFactory, override_settings  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402
from django.urls import path  # noqa: E402
from django.utils.module_loading import import_string  # noqa: E402

import annals.django  # noqa: E402
from annals.django import _attribution, _middleware  # noqa: E402
from annals.django.admin import AnnalsHistoryMixin  # noqa: E402


@pytest.fixture
def table(unique: str) -> Iterator[str]:
    create_table(unique)
    yield unique
    connection.close()


def insert(table: str, id: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"insert into {table} (id) values (%s)", [id])


@contextmanager
def settings(**members: Any) -> Iterator[None]:
    """Other members of ANNALS, on a new connection."""
    connection.close()
    del connections["default"]
    with override_settings(ANNALS={**django.conf.settings.ANNALS, **members}):
        yield
    connection.close()
    del connections["default"]


def test_in_atomic_the_changes_say_who(table: str) -> None:
    with annals.context(actor="Jane"), transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("select 1")
        insert(table, 1)
        insert(table, 2)
    with transaction.atomic():
        insert(table, 3)
    assert noted(table) == [(1, "Jane"), (2, "Jane"), (3, None)]


def test_outside_of_atomic_each_statement_has_a_transaction(table: str) -> None:
    with annals.context(actor="Jane"):
        with connection.cursor() as cursor:
            cursor.execute(f"insert into {table} (id) values (1), (2) returning id")
            assert cursor.fetchall() == [(1,), (2,)] and cursor.rowcount == 2
            cursor.executemany(f"insert into {table} (id) values (%s)", [[3], [4]])
            cursor.execute(f"insert into {table} (id) values (8)".encode())
            # Several statements go alone.
            cursor.execute(
                f"insert into {table} (id) values (5); insert into {table} (id) values (6)"
            )
    insert(table, 7)
    assert noted(table) == [
        *((id, "Jane") for id in (1, 2, 3, 4, 8)),
        *((id, None) for id in (5, 6, 7)),
    ]
    assert connection.get_autocommit() and not connection.in_atomic_block


def test_autocommit_false_leaves_these_alone(table: str) -> None:
    with settings(autocommit=False), annals.context(actor="Jane"):
        insert(table, 1)
        with transaction.atomic():
            insert(table, 2)
    assert noted(table) == [(1, None), (2, "Jane")]


def test_savepoints_and_transactions_that_go_back(table: str) -> None:
    class Back(Exception):
        pass

    with transaction.atomic():
        with pytest.raises(Back), transaction.atomic(), annals.context(actor="Jane"):
            insert(table, 1)
            raise Back
        insert(table, 2)
        with annals.context(actor="John"):
            with transaction.atomic():
                insert(table, 3)
            insert(table, 4)
        insert(table, 5)
    with annals.context(actor="Jane"):
        with pytest.raises(Back), transaction.atomic():
            insert(table, 6)
            raise Back
        with transaction.atomic():
            insert(table, 7)
    with transaction.atomic():
        insert(table, 8)
    assert noted(table) == [(2, None), (3, "John"), (4, "John"), (5, None), (7, "Jane"), (8, None)]


def test_manual_transactions(table: str) -> None:
    transaction.set_autocommit(False)
    try:
        with annals.context(actor="Jane"):
            insert(table, 1)
            transaction.commit()
            insert(table, 2)
            transaction.rollback()
            insert(table, 3)
            transaction.commit()
    finally:
        transaction.set_autocommit(True)
    assert noted(table) == [(1, "Jane"), (3, "Jane")]


def test_a_function_that_is_atomic_says_who_at_each_call(table: str) -> None:
    @transaction.atomic
    def work(id: int) -> None:
        # The driver's own cursor begins the transaction, which Django does not notice.
        with connection.connection.cursor() as cursor:
            cursor.execute("select 1")
        insert(table, id)

    with annals.context(actor="Jane"):
        insert(table, 0)
        for id in (1, 2, 3):
            work(id)
    assert noted(table) == [(id, "Jane") for id in range(4)]


def test_the_log_has_a_message_and_without_capture_none(table: str) -> None:
    with messages() as found, annals.context(actor="Jane 🎈"):
        insert(table, 1)
        with transaction.atomic():
            insert(table, 2)
            insert(table, 3)
    assert found == [{"actor": "Jane 🎈"}] * 2
    with settings(capture=False), messages() as found, annals.context(actor="Jane"):
        insert(table, 4)
    assert found == [] and noted(table)[-1] == (4, "Jane")


def test_the_application_does_not_find_our_statements(table: str) -> None:
    with annals.context(actor="Jane"):
        insert(table, 0)
        with CaptureQueriesContext(connection) as queries, transaction.atomic():
            insert(table, 1)
        written = [one["sql"] for one in queries.captured_queries]
        assert [sql for sql in written if "annals" in sql] == [] and len(written) <= 3


def test_what_fails_fails_as_without_us(table: str) -> None:
    with annals.context(actor="Jane"):
        insert(table, 1)
        with pytest.raises(django.db.IntegrityError):
            insert(table, 1)
        with pytest.raises(django.db.ProgrammingError):
            insert("no_such_table", 1)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("set transaction isolation level serializable")
            cursor.execute(f"lock table {table}")
            cursor.execute(f"insert into {table} (id) values (2)")
    assert noted(table) == [(1, "Jane"), (2, "Jane")]


def test_a_transaction_that_failed_has_the_error_of_django(table: str) -> None:
    with annals.context(actor="Jane"):
        insert(table, 1)
        with transaction.atomic():
            with pytest.raises(django.db.ProgrammingError), transaction.mark_for_rollback_on_error(
                None
            ):
                with connection.cursor() as cursor:
                    cursor.execute("select nothing")
            with pytest.raises(transaction.TransactionManagementError):
                insert(table, 2)
    assert noted(table) == [(1, "Jane")]


def test_a_lost_connection_is_replaced(table: str) -> None:
    with annals.context(actor="Jane"):
        insert(table, 1)
        connection.close()
        with transaction.atomic():
            insert(table, 2)
    wrappers = [
        one for one in connection.execute_wrappers if isinstance(one, _attribution._Attribution)
    ]
    assert len(wrappers) == 1 and noted(table) == [(1, "Jane"), (2, "Jane")]


def test_connecting_within_a_wrapper_of_the_application_keeps_ours(table: str) -> None:
    seen: list[str] = []

    def own(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        seen.append(sql)
        return execute(sql, params, many, context)

    connection.close()
    del connections["default"]
    with connections["default"].execute_wrapper(own), annals.context(actor="Jane"):
        insert(table, 1)
    with annals.context(actor="Jane"):
        insert(table, 2)
    assert noted(table) == [(1, "Jane"), (2, "Jane")] and len(seen) == 1


def test_a_server_that_refuses_is_asked_once(
    table: str, unique: str, caplog: pytest.LogCaptureFixture
) -> None:
    _warnings._warned.clear()
    with forbidden_role(f"{unique}_role") as role:
        connections.settings["refused"] = {
            **connections.settings["default"],
            "USER": role,
            "PASSWORD": "x",
        }
        for id in (1, 2):
            with annals.context(actor="Jane"), connections["refused"].cursor() as cursor:
                cursor.execute(f"insert into {table} (id) values ({id})")
        connections["refused"].close()
        del connections.settings["refused"]
    assert noted(table) == [(1, None), (2, None)]
    (record,) = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert "42501" in record.message


def request(who: Any, **headers: str) -> Any:
    made = RequestFactory().get(
        "/", **{f"HTTP_{name.upper()}": text for name, text in headers.items()}
    )
    made.who = who
    return made


def test_the_middleware_opens_a_context_for_each_request(table: str) -> None:
    seen: list[Any] = []

    def view(_: Any) -> HttpResponse:
        seen.append(annals.current_context())
        insert(table, len(seen))
        return HttpResponse()

    middleware = annals.django.ContextMiddleware(view)
    middleware(request(lambda _: {"actor": "Jane", "actor_id": 17, "context": {"ip": "x"}}))
    middleware(request(lambda _: None, traceparent="t-1"))
    assert (seen[0].actor, seen[0].actor_id, seen[0].context) == ("Jane", 17, {"ip": "x"})
    assert len({one.correlation_id for one in seen}) == 2 and "t-1" not in seen[1].correlation_id
    assert annals.current_context() is None and noted(table) == [(1, "Jane"), (2, None)]


def test_a_header_is_taken_only_where_it_is_trusted(table: str) -> None:
    def view(_: Any) -> HttpResponse:
        return HttpResponse(annals.current_context().correlation_id)

    with override_settings(ANNALS={"trust_correlation": True}):
        middleware = annals.django.ContextMiddleware(view)

    def answered(**headers: str) -> bytes:
        return bytes(middleware(request(None, **headers)).content)

    trace = "0af7651916cd43dd8448eb211c80319c"
    assert (
        answered(traceparent=f"00-{trace}-b7ad6b7169203331-01", x_request_id="b") == trace.encode()
    )
    for other in (
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"ff-{trace}-b7ad6b7169203331-01",
        trace,
        "",
    ):
        assert answered(traceparent=other, x_request_id="b") == b"b"
    assert answered(x_request_id="a" * 200) == b"a" * 200
    for text in ("a b", "é", "", "a" * 201):
        assert len(answered(x_request_id=text)) == 36


def test_address_and_user_agent_are_taken_only_where_they_are_asked_for() -> None:
    seen: list[Any] = []

    def view(_: Any) -> HttpResponse:
        seen.append(annals.current_context().context)
        return HttpResponse()

    who = {"context": {"ip": "of the application"}}
    for members in ({}, {"address": True, "user_agent": True}):
        with override_settings(ANNALS={**django.conf.settings.ANNALS, **members}):
            middleware = annals.django.ContextMiddleware(view)
        middleware(request(lambda _: None, user_agent="x" * 501))
        middleware(request(lambda _: who, user_agent="x"))
    agent = "x" * 500
    assert seen == [
        None,
        who["context"],
        {"ip": "127.0.0.1", "userAgent": agent},
        {"ip": "of the application", "userAgent": "x"},
    ]


def test_a_resolve_that_fails_costs_the_actor_and_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    _warnings._warned.clear()

    async def later(_: Any) -> None:
        await asyncio.sleep(0)

    def fail(_: Any) -> None:
        raise RuntimeError("a secret")

    seen: list[Any] = []

    def view(_: Any) -> HttpResponse:
        seen.append(annals.current_context())
        return HttpResponse()

    middleware = annals.django.ContextMiddleware(view)
    for who in (fail, later, lambda _: "Jane", lambda _: {"unknown": 1}):
        middleware(request(who))
    assert [one.actor for one in seen] == [None] * 4 and all(one.correlation_id for one in seen)
    (record,) = caplog.records
    assert "secret" not in record.message


def test_the_middleware_is_asynchronous_too() -> None:
    async def use() -> list[Any]:
        seen: list[Any] = []

        async def view(_: Any) -> HttpResponse:
            await asyncio.sleep(0)
            seen.append(annals.current_context())
            return HttpResponse()

        async def quick(_: Any) -> Any:
            return {"actor": "Jane"}

        async def slow(_: Any) -> Any:
            await asyncio.sleep(60)

        middleware = annals.django.ContextMiddleware(view)
        for who in (quick, slow, lambda _: {"actor": "John"}):
            made = AsyncRequestFactory().get("/")
            made.who = who
            await middleware(made)
        return seen

    assert [one.actor for one in asyncio.run(use())] == ["Jane", None, "John"]


def test_without_a_resolve_it_is_the_user() -> None:
    user = User(pk=7, username="jane", first_name="Jane", last_name="Doe")
    assert _middleware.user_of(types.SimpleNamespace(user=user)) == {
        "actor": "Jane Doe",
        "actor_id": "7",
    }
    user = User(pk=7, username="jane")
    assert _middleware.user_of(types.SimpleNamespace(user=user)) == {
        "actor": "jane",
        "actor_id": "7",
    }
    assert _middleware.user_of(types.SimpleNamespace(user=AnonymousUser())) is None
    assert _middleware.user_of(types.SimpleNamespace()) is None


def test_the_setting_of_middlewares_finds_it() -> None:
    found = import_string("annals.django.ContextMiddleware")
    assert found is annals.django.ContextMiddleware


def test_an_unknown_member_of_the_setting_is_an_error() -> None:
    with override_settings(ANNALS={"resolv": "x"}):
        with pytest.raises(ImproperlyConfigured, match="resolv"):
            annals.django.ContextMiddleware(lambda _: HttpResponse())


class Order(models.Model):
    title = models.TextField()

    class Meta:
        app_label = "auth"
        managed = False

    def __str__(self) -> str:
        return self.title


class OrderAdmin(AnnalsHistoryMixin, admin.ModelAdmin):
    allowed = True

    def get_object(self, request: Any, object_id: str, from_field: Any = None) -> Any:
        return None if object_id == "none" else Order(pk=object_id, title="<b>Lamp</b>")

    def has_view_or_change_permission(self, request: Any, obj: Any = None) -> bool:
        return self.allowed


admin.site.register(Order, OrderAdmin)
urlpatterns = [path("admin/", admin.site.urls)]


def shown(order_admin: Any, id: str, query: str = "") -> Any:
    made = RequestFactory().get(f"/?{query}")
    made.user = User(pk=1, username="admin", is_staff=True, is_superuser=True)
    response = order_admin.history_view(made, id)
    return response.status_code, response.render().content.decode()


def test_the_admin_shows_the_history_of_an_object(annals: Annals, unique: str) -> None:
    with annals.recorder(RECORDER_URL) as recorder:
        for count in range(1, 53):
            recorder.record(
                "update",
                unique,
                '7"\\',
                before={"title": f"<i>{count - 1}</i>"},
                after={"title": f"<i>{count}</i>"},
                actor="Jane <Doe>",
            )
        recorder.record("create", unique, "8", after={"title": "of another"})
    order_admin = admin.site._registry[Order]
    order_admin.annals_entity = unique
    status, page = shown(order_admin, '7"\\')
    assert status == 200 and "52 entries" in page and "of another" not in page
    assert "Jane &lt;Doe&gt;" in page and "&lt;i&gt;52&lt;/i&gt;" in page and "<i>" not in page
    assert "<b>Lamp" not in page and "?p=2" in page and "&lt;i&gt;1&lt;/i&gt;" not in page
    status, page = shown(order_admin, '7"\\', "p=2")
    assert status == 200 and "&lt;i&gt;1&lt;/i&gt;" in page and "?p=1" in page
    status, page = shown(order_admin, "9")
    assert status == 200 and "no change" in page
    with pytest.raises(django.http.Http404):
        shown(order_admin, "none")
    order_admin.allowed = False
    with pytest.raises(PermissionDenied):
        shown(order_admin, "8")
    order_admin.allowed = True
    from annals.django.admin import _annals

    _annals.cache_clear()
    away = {"base_url": "http://127.0.0.1:1", "tenant": TENANT, "token": "x", "max_retries": 0}
    with override_settings(ANNALS={"server": away}):
        status, page = shown(order_admin, "8")
    assert status == 502 and "cannot be read" in page
    _annals.cache_clear()
    with override_settings(ANNALS={}), pytest.raises(ImproperlyConfigured):
        shown(order_admin, "8")
    _annals.cache_clear()


def test_the_history_button_leads_there() -> None:
    names = [one.name for one in admin.site._registry[Order].urls]
    assert "auth_order_history" in names
    assert execute("select 1") == [(1,)]
