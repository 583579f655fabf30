"""What a type checker knows of the client: mypy checks this file, and nothing runs it."""

from __future__ import annotations

from typing import Any, assert_type

from annals import Annals, AsyncAnnals, Context, Webhook, current_context, verify_webhook
from annals.schemas import Actor, ChangeEntry, DocumentAtMoment, FeedChange, Job, Subscription


def blocking(annals: Annals) -> None:
    assert_type(annals.history.list("entity:order", size=5).page().items, list[ChangeEntry])
    assert_type(annals.history.document("order", "o-1", changes=3), DocumentAtMoment)
    assert_type(next(iter(annals.history.tail())), FeedChange)
    assert_type([one for one in annals.history.actors("jane")], list[Actor])
    assert_type(annals.jobs.wait(annals.jobs.export("entity:order"), limit=5.0), Job)
    assert_type(annals.instances("SHELF").get("a"), dict[str, Any])
    assert_type(annals.recorder("http://x", delay=0.1).record("create", "order", "o-1"), bool)
    assert_type(verify_webhook(b"", {}, "whsec_"), Webhook)
    assert_type(current_context(), Context | None)
    annals.history.document("order", "o-1", change=3)  # type: ignore[call-arg]
    annals.recorder("http://x", delays=1)  # type: ignore[call-arg]
    annals.subscriptions.list(pagesize=1)  # type: ignore[call-arg]


async def awaited(annals: AsyncAnnals) -> None:
    page = await annals.subscriptions.list(page_size=5)
    assert_type(page.items, list[Subscription])
    assert_type(page.total, int | None)
    assert_type([one async for one in annals.history.list()], list[ChangeEntry])
    assert_type(await annals.history.document("order", "o-1"), DocumentAtMoment)
    assert_type(await annals.jobs.export(), str)
    assert_type(await annals.recorder("http://x").flush(), bool)
