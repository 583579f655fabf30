"""The client on a real server."""

from __future__ import annotations

import asyncio
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from annals import Annals, ApiError, AsyncAnnals, quoted
from conftest import CREDENTIALS, RECORDER_URL, TENANT, URL


def record(annals: Annals, entity: str, count: int, **more: Any) -> None:
    with annals.recorder(RECORDER_URL) as recorder:
        for number in range(1, count + 1):
            recorder.record(
                "update",
                entity,
                f"{entity}-1",
                before={"count": number - 1},
                after={"count": number},
                **more,
            )
    assert recorder.counts["recorded"] == count, (recorder.counts, recorder.dropped)


def counts(entries: Any) -> list[int]:
    return [entry["paths"]["count"]["after"] for entry in entries]


def test_a_page_has_the_total_and_a_loop_all_entries(annals: Annals, unique: str) -> None:
    record(annals, unique, 7)
    page = annals.history.list(f"entity:{unique}", size=3).page()
    assert (page.total, page.number, page.pages) == (7, 1, 3)
    assert counts(page) == [7, 6, 5]
    second = page.next_page()
    assert second is not None and counts(second) == [4, 3, 2]
    first = second.previous_page()
    assert first is not None and counts(first) == [7, 6, 5] and first.previous_page() is None
    assert counts(annals.history.list(f"entity:{unique}", size=3)) == [7, 6, 5, 4, 3, 2, 1]


def test_a_loop_has_only_what_was_there_at_its_first_page(annals: Annals, unique: str) -> None:
    record(annals, unique, 4)
    entries = iter(annals.history.list(f"entity:{unique}", size=2))
    begun = [next(entries), next(entries)]
    record(annals, unique, 2)
    assert counts([*begun, *entries]) == [4, 3, 2, 1]


def test_numbers_keep_every_digit_in_both_directions(annals: Annals, unique: str) -> None:
    document = {
        "price": Decimal("1.10"),
        "large": 9007199254740993,
        "huge": int("9" * 400),
        "zero": Decimal("-0"),
        "tiny": Decimal("1E-400"),
    }
    with annals.recorder(RECORDER_URL) as recorder:
        recorder.record("create", unique, "e-1", after=document)
    paths = annals.history.list(f"entity:{unique}").page().items[0]["paths"]
    for name, value in document.items():
        read = paths[name]["after"]
        assert (type(read), str(read)) == (type(value), str(value)), name
    assert annals.history.document(unique, "e-1")["document"] == document


def test_a_document_at_a_moment_and_after_so_many_changes(annals: Annals, unique: str) -> None:
    record(annals, unique, 3)
    third = annals.history.document(unique, f"{unique}-1")
    assert third["document"] == {"count": 3}
    assert annals.history.document(unique, f"{unique}-1", changes=2)["document"] == {"count": 2}
    early = datetime(2001, 1, 1, tzinfo=timezone.utc)
    assert annals.history.document(unique, f"{unique}-1", at=early)["document"] == {"count": 0}
    with pytest.raises(ApiError) as caught:
        annals.history.document(unique, f"{unique}-1", changes=4)
    assert (caught.value.status, caught.value.type) == (404, "resource_not_found")
    with pytest.raises(ValueError, match="time zone"):
        annals.history.document(unique, f"{unique}-1", at=datetime(2001, 1, 1))


def test_counts_names_actors_and_one_entry(annals: Annals, unique: str) -> None:
    record(annals, unique, 3, actor="Jane Doe", actor_id=unique)
    q = f"entity:{unique}"
    assert annals.history.histogram(q, buckets=5)["totalElements"] == 3
    assert annals.history.facets("actor", q=q)["values"] == [{"value": "Jane Doe", "count": 3}]
    assert annals.history.names("entity", prefix=unique)["values"] == [unique]
    (found,) = annals.history.documents(f"{unique}-1")["values"]
    assert (found["entity"], found["entityId"]) == (unique, f"{unique}-1")
    (actor,) = annals.history.actors(unique)
    assert [name["name"] for name in actor["names"]] == ["Jane Doe"]
    assert annals.history.recorders()["recorders"]
    entry = annals.history.list(q, ref=True, size=1).page().items[0]
    assert annals.history.entry(entry["ref"])["paths"] == entry["paths"]


def test_the_feed_goes_on_from_a_cursor(annals: Annals, unique: str) -> None:
    record(annals, unique, 3)
    changes = annals.history.tail(f"entity:{unique}", after="start")
    first = next(changes)
    assert first["paths"]["count"] == {"before": 0, "after": 1}
    changes.close()
    caught_up: list[bool] = []
    rest = annals.history.tail(
        f"entity:{unique}", after=first["cursor"], on_caught_up=lambda: caught_up.append(True)
    )
    assert [next(rest)["paths"]["count"]["after"] for _ in range(2)] == [2, 3]
    record(annals, unique, 1)
    assert next(rest)["paths"]["count"]["after"] == 1
    assert caught_up == [True]
    rest.close()


def test_quotes_make_a_value_of_any_text(annals: Annals, unique: str) -> None:
    ids = [f"{unique} OR entity:*", '"', "\\", '\\"', "a*", "(", "~x", "é 🎈", " a  b "]
    with annals.recorder(RECORDER_URL) as recorder:
        for id in ids:
            recorder.record("create", unique, id, after={})
    for id in ids:
        found = annals.history.list(f"entity:{unique} entityId:{quoted(id)}")
        assert [entry["entityId"] for entry in found] == [id]


def test_what_the_service_refuses_for_good_ends_the_feed(annals: Annals) -> None:
    with pytest.raises(ApiError) as caught:
        next(annals.history.tail("what:ever"))
    assert caught.value.status == 400


def test_an_export_is_waited_for_and_read_line_by_line(annals: Annals, unique: str) -> None:
    record(annals, unique, 5)
    job = annals.jobs.export(f"entity:{unique}")
    assert annals.jobs.wait(job, limit=60)["status"] == "success"
    assert counts(annals.jobs.entries(job)) == [5, 4, 3, 2, 1]
    csv = annals.jobs.export(f"entity:{unique}", format="CSV", rows="field")
    annals.jobs.wait(csv, limit=60)
    file = annals.jobs.content(csv)
    assert file.content_type.startswith("text/csv")
    with file.pieces as pieces:
        assert len(b"".join(pieces).splitlines()) == 6
    assert annals.jobs.get(job)["id"] == job
    annals.jobs.delete(job)
    with pytest.raises(ApiError):
        annals.jobs.get(job)
    assert job not in [one["id"] for one in annals.jobs.list(page_size=500)]


def test_custom_entities_are_made_read_changed_and_deleted(annals: Annals, unique: str) -> None:
    type = unique.upper()
    assert annals.custom_entities.put(type, {"name": {"en": "Shelf"}}) is True
    shelves = annals.instances(type)
    for slots in range(1, 6):
        shelves.put(f"s-{slots}", {"slots": slots, "price": Decimal("1.10")})
    assert shelves.put("s-1", {"slots": 1}) is False
    id = shelves.create({"slots": 9})
    shelves.patch(id, [{"op": "replace", "path": "/slots", "value": 10}])
    assert shelves.get(id)["slots"] == 10
    assert str(shelves.get("s-2")["price"]) == "1.10"
    page = shelves.list(q="slots:<=5", sort="slots:DESC", page_size=2, total=True).page()
    assert page.total == 5 and [one["id"] for one in page] == ["s-5", "s-4"]
    following = page.next_page()
    assert following is not None and following.total is None
    assert [one["id"] for one in following] == ["s-3", "s-2"]
    back = following.previous_page()
    assert back is not None and back.items == page.items
    assert len(list(shelves.list(q="slots:<=5", page_size=2))) == 5
    with pytest.raises(TypeError, match="takes no pagesize"):
        shelves.list(pagesize=2)  # type: ignore[call-arg]
    with pytest.raises(ApiError) as caught:
        shelves.put(id, {"slots": 1, "metadata": {"version": 77}})
    assert caught.value.status == 409
    for each in list(shelves.list()):
        shelves.delete(each["id"])
    annals.custom_entities.delete(type)


def test_settings_views_and_subscriptions(annals: Annals, unique: str) -> None:
    annals.configurations.create([{"key": unique, "value": {"rate": Decimal("1.10")}}])
    assert str(annals.configurations.get(unique)["value"]["rate"]) == "1.10"
    assert annals.configurations.replace(unique, {"value": 2, "version": 1})["version"] == 2
    assert [one["key"] for one in annals.configurations.list(keys=[unique])] == [unique]
    annals.configurations.delete(unique)

    view = annals.views.create({"name": unique, "q": "entity:order"})
    assert annals.views.get(view)["name"] == unique
    assert annals.views.put(view, {"name": unique, "q": "entity:product"}) is False
    assert view in [one["id"] for one in annals.views.list()]
    annals.views.delete(view)

    made = annals.subscriptions.create(
        {
            "name": unique,
            "q": f"entity:{unique}",
            "target": {"type": "webhook", "url": "https://erp.example.com/changes"},
        }
    )
    assert made["secret"].startswith("whsec_")
    subscriptions = annals.subscriptions
    subscriptions.pause(made["id"])
    assert subscriptions.get(made["id"])["state"] == "paused"
    subscriptions.resume(made["id"])
    assert "items" in subscriptions.preview(made["id"])
    assert list(subscriptions.attempts(made["id"])) == []
    assert subscriptions.rotate(made["id"])["secret"] != made["secret"]
    subscriptions.delete(made["id"])


def test_an_error_names_the_field_and_the_request(annals: Annals) -> None:
    with pytest.raises(ApiError) as caught:
        annals.history.list(size=101).page()
    error = caught.value
    assert (error.status, error.type, error.attempts) == (400, "validation_violation", 1)
    assert [one["field"] for one in error.details] == ["size"] and error.request_id
    unreachable = Annals("http://127.0.0.1:1", TENANT, token="x", max_retries=0)
    with pytest.raises(ApiError) as caught:
        unreachable.history.recorders()
    assert (caught.value.type, caught.value.status) == ("connection_failed", None)
    wrong = Annals(URL, TENANT, client_id=CREDENTIALS["client_id"], client_secret="wrong")
    with pytest.raises(ApiError) as caught:
        wrong.history.recorders()
    assert caught.value.type == "invalid_client"
    with pytest.raises(TypeError):
        Annals(URL, TENANT)


def test_the_same_operations_are_awaited(
    annals: Annals, async_annals: AsyncAnnals, unique: str
) -> None:
    async def use() -> None:
        async with async_annals as client:
            async with client.recorder(RECORDER_URL) as recorder:
                for number in (1, 2, 3):
                    assert recorder.record("update", unique, "a", after={"count": number})
                recorder.event("sign-in", entity_id=unique, details={"rate": Decimal("1.10")})
                assert await recorder.flush()
            page = await client.history.list(f"entity:{unique}", size=2)
            assert page.total == 3 and counts(page) == [3, 2]
            rest = await page.next_page()
            assert rest is not None and counts(rest) == [1] and await rest.next_page() is None
            entries = [one async for one in client.history.list(f"entity:{unique}", size=2)]
            assert counts(entries) == [3, 2, 1]
            document = await client.history.document(unique, "a")
            assert document["document"] == {"count": 3}
            changes = client.history.tail(f"entity:{unique}", after="start")
            assert (await anext(changes))["paths"]["count"]["after"] == 1
            await changes.aclose()
            job = await client.jobs.export(f"entity:{unique}")
            await client.jobs.wait(job, limit=60)
            assert counts([one async for one in client.jobs.entries(job)]) == [3, 2, 1]
            with pytest.raises(ApiError) as caught:
                await client.jobs.get("none")
            assert caught.value.status == 404
            many = await asyncio.gather(*(client.history.recorders() for _ in range(20)))
            assert len(many) == 20

    asyncio.run(use())
    # Another loop has connections of its own.
    asyncio.run(use_again(async_annals, unique))


async def use_again(client: AsyncAnnals, unique: str) -> None:
    assert (await client.history.list(f"entity:{unique}")).total == 3
    await client.close()


def test_a_token_may_be_given_by_the_application(annals: Annals) -> None:
    steps = annals._core.exchange.tokens
    text = annals._driver.run(steps.get())
    asked: list[int] = []

    def token() -> str:
        asked.append(1)
        return str(text)

    with Annals(URL, TENANT, token=token) as client:
        client.history.recorders()
        client.history.recorders()
    assert len(asked) == 2

    async def use() -> None:
        async def later() -> str:
            return str(text)

        async with AsyncAnnals(URL, TENANT, token=later) as other:
            await other.history.recorders()
            with pytest.raises(TypeError, match="not async"):
                other.recorder(RECORDER_URL)

    asyncio.run(use())
