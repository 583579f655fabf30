"""Every operation that the client calls is in the OpenAPI documents."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from annals import AsyncAnnals, _resources
from annals._client import Annals
from annals._exchange import Request
from annals._operation import listing, operation
from annals._streams import Tail
from conftest import TENANT, read_file

DOCUMENTS = read_file("openapi.json")


class Sent(Exception):
    def __init__(self, request: Request) -> None:
        super().__init__(request.path)
        self.request = request


class Exchange:
    """Notes what would be sent."""

    tokens = None

    def send(self, request: Request) -> Any:
        raise Sent(request)
        yield


ANY = {"page_size": 1, "page_number": 2, "next": "a", "prev": "b", "total": True, "sort": "id:ASC"}
LIST = {**ANY, "q": "id:x", "fields": "id"}
PARTS = {
    "history": _resources.SyncHistory,
    "views": _resources.SyncViews,
    "subscriptions": _resources.SyncSubscriptions,
    "custom_entities": _resources.SyncCustomEntities,
    "instances": _resources.SyncInstances,
    "configurations": _resources.SyncConfigurations,
    "viewer_tokens": _resources.SyncViewerTokens,
    "jobs": _resources.SyncJobs,
}
#: With every parameter that an operation has.
CALLS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "history.list": (
        ["q"],
        {"page": 1, "size": 2, "context": True, "ref": True, "value_limit": 300},
    ),
    "history.entry": (["r"], {"context": True, "value_limit": 300}),
    "history.document": (["e", "i"], {"at": "2026-01-01T00:00:00Z", "changes": 1}),
    "history.histogram": (["q"], {"buckets": 1, "time_zone": "UTC"}),
    "history.facets": (["actor"], {"q": "q", "size": 1}),
    "history.names": (["actor"], {"prefix": "a", "entity": "e", "size": 1}),
    "history.documents": (["a"], {"entity": "e", "changed_before": "2026-01-01", "size": 1}),
    "history.recorders": ([], {}),
    "history.actors": (["a"], ANY),
    "views.list": ([], LIST),
    "views.get": (["v"], {}),
    "views.create": ([{}], {}),
    "views.put": (["v", {}], {}),
    "views.delete": (["v"], {}),
    "subscriptions.list": ([], LIST),
    "subscriptions.get": (["s"], {}),
    "subscriptions.create": ([{}], {}),
    "subscriptions.replace": (["s", {}], {}),
    "subscriptions.delete": (["s"], {}),
    "subscriptions.test": (["s"], {}),
    "subscriptions.pause": (["s"], {}),
    "subscriptions.resume": (["s"], {"from_": "now"}),
    "subscriptions.replay": (["s", {}], {}),
    "subscriptions.rotate": (["s"], {}),
    "subscriptions.attempts": (["s"], LIST),
    "subscriptions.sent_request": (["s", "a"], {}),
    "subscriptions.preview": (["s"], {"after": "c", "limit": 1}),
    "subscriptions.delete_parked": (["s"], {}),
    "custom_entities.list": ([], {k: v for k, v in LIST.items() if k != "fields"}),
    "custom_entities.get": (["T"], {}),
    "custom_entities.create": ([{}], {}),
    "custom_entities.put": (["T", {}], {}),
    "custom_entities.delete": (["T"], {}),
    "instances.list": ([], LIST),
    "instances.get": (["i"], {}),
    "instances.create": ([{}], {}),
    "instances.put": (["i", {}], {}),
    "instances.patch": (["i", []], {}),
    "instances.delete": (["i"], {}),
    "configurations.list": ([], {"keys": ["a", "b"]}),
    "configurations.get": (["k"], {}),
    "configurations.create": ([[]], {}),
    "configurations.replace": (["k", {}], {}),
    "configurations.delete": (["k"], {}),
    "viewer_tokens.create": ([{}], {}),
    "jobs.list": ([], LIST),
    "jobs.get": (["j"], {}),
    "jobs.delete": (["j"], {}),
    "jobs.wait": (["j"], {}),
    "jobs.export": (
        ["q"],
        {"format": "CSV", "rows": "field", "bom": True, "context": True, "proof": True},
    ),
}


def client() -> Annals:
    annals = Annals("http://x", TENANT, token="x")
    for part in (annals.history, annals.jobs):
        object.__setattr__(part._core, "exchange", Exchange())
    return annals


def request_of(call: Callable[[], Any]) -> Request:
    with pytest.raises(Sent) as caught:
        call()
    return caught.value.request


def checked(request: Request) -> None:
    """The one operation of the documents that a request is of has all of its parameters."""
    found = []
    for document in DOCUMENTS:
        for path, methods in document["paths"].items():
            pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))
            if re.fullmatch(pattern, request.path) and request.method.lower() in methods:
                found.append((document, methods[request.method.lower()]))
    # Both documents describe the token endpoint.
    assert found, f"there is no {request.method} {request.path}"
    document, described = found[0]
    parameters = [resolved(document, one) for one in described.get("parameters", [])]
    of = {
        place: {p["name"].lower() for p in parameters if p["in"] == place}
        for place in ("query", "header")
    }
    needed = {p["name"].lower() for p in parameters if p["in"] == "query" and p.get("required")}
    sent = {name.lower() for name, value in request.query.items() if value is not None}
    assert sent <= of["query"], f"{request.path} takes no {sent - of['query']}"
    assert needed <= sent, f"{request.path} needs {needed - sent}"
    headers = {name for name, value in request.headers.items() if value is not None} - {"accept"}
    assert headers <= of["header"] | {"content-encoding"}, headers
    assert (request.body is not None) == ("requestBody" in described)
    if request.body is not None:
        assert request.content_type in described["requestBody"]["content"]


def resolved(document: Any, one: Any) -> Any:
    if "$ref" not in one:
        return one
    for name in one["$ref"].removeprefix("#/").split("/"):
        document = document[name]
    return document


def test_every_operation_of_the_client_is_in_the_list() -> None:
    names = {
        f"{part}.{name}"
        for part, kind in PARTS.items()
        for name, member in inspect.getmembers(
            kind, lambda one: isinstance(one, (operation, listing))
        )
    }
    assert names == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_an_operation_is_described_with_all_of_its_parameters(name: str) -> None:
    part_name, method = name.split(".")
    annals = client()
    part = annals.instances("T") if part_name == "instances" else getattr(annals, part_name)
    args, options = CALLS[name]
    bound = getattr(part, method)
    signature = inspect.signature(bound)
    if "parameters" not in signature.parameters:
        given = set(signature.bind(*args, **options).arguments)
        left_out = set(signature.parameters) - given
        assert left_out <= {"limit"} if method == "wait" else not left_out, left_out
    if isinstance(getattr(type(part), method), listing):
        checked(request_of(lambda: bound(*args, **options).page()))
    else:
        checked(request_of(lambda: bound(*args, **options)))


def test_what_comes_in_pieces_is_described() -> None:
    annals = client()
    checked(request_of(lambda: annals.jobs.content("j")))
    checked(request_of(lambda: next(annals.history.tail("q", after="start", context=True))))
    tail = Tail(annals._core, "q", None, None, None, None, None, None)
    tail._cursor = "c"
    checked(request_of(lambda: next(tail.connect())))


def test_the_token_and_the_recorder_are_described() -> None:
    annals = Annals("http://x", TENANT, client_id="a", client_secret="b")
    object.__setattr__(annals._core.exchange.tokens, "_exchange", Exchange())
    checked(request_of(lambda: next(annals._core.exchange.tokens._renew())))
    recorder = annals.recorder("http://x")
    object.__setattr__(recorder, "_exchange", Exchange())
    checked(request_of(lambda: recorder._post([b"x" * 2_000])))
    recorder.close(0)


def test_both_clients_have_the_same_parts_and_operations() -> None:
    asynchronous = AsyncAnnals("http://x", TENANT, token="x")
    for name in PARTS:
        one = getattr(client(), name)
        other = getattr(asynchronous, name)
        if name == "instances":
            one, other = one("T"), other("T")
        assert [n for n in dir(one) if n[0] != "_"] == [n for n in dir(other) if n[0] != "_"]
