"""The *History* of an object in Django's admin, read from Annals.

>>> @admin.register(Order)
... class OrderAdmin(AnnalsHistoryMixin, admin.ModelAdmin):
...     annals_entity = "order"
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.contrib.admin.utils import unquote
from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.text import capfirst

from annals._client import Annals
from annals._errors import ApiError
from annals._json import write
from annals._pages import quoted
from annals.django._settings import setting

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin as _Base
else:
    _Base = object

#: Entries of a page, and bytes of a value that are shown.
PAGE_SIZE = 50
MAX_VALUE = 1_000


@lru_cache(maxsize=1)
def _annals() -> Annals:
    server = setting("server")
    if server is None:
        raise ImproperlyConfigured("ANNALS needs 'server' for the history in the admin.")
    options: dict[str, Any] = {"timeout": 10.0, "max_retries": 1, **server}
    return Annals(**options)


class AnnalsHistoryMixin(_Base):
    """Shows what Annals recorded of an object in place of what the admin itself logged."""

    #: The entity type of the documents in the history. Default: the name of the model.
    annals_entity: str | None = None
    #: The template of the page.
    annals_template = "admin/annals/object_history.html"

    def annals_entity_id(self, obj: Any) -> str:
        """The id of the document of an object."""
        return str(obj.pk)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        obj = self.get_object(request, unquote(object_id))
        if obj is None:
            raise Http404(f"There is no {self.model._meta.verbose_name} {object_id}.")
        if not self.has_view_or_change_permission(request, obj):
            raise PermissionDenied
        entity = self.annals_entity or str(self.model._meta.model_name)
        status, page, fault = 200, None, None
        try:
            page = _page(entity, self.annals_entity_id(obj), _number(request.GET.get("p")))
        except ApiError as error:
            status, fault = 502, f"Annals cannot be read: {error}"
        shown = {
            **self.admin_site.each_context(request),
            "title": f"History: {obj}",
            "object": obj,
            "module_name": capfirst(str(self.opts.verbose_name_plural)),
            "opts": self.opts,
            "page": page,
            "rows": [] if page is None else [_row(entry) for entry in page.items],
            "fault": fault,
            "preserved_filters": self.get_preserved_filters(request),
            **(extra_context or {}),
        }
        request.current_app = self.admin_site.name  # type: ignore[attr-defined]
        return TemplateResponse(request, self.annals_template, shown, status=status)


def _page(entity: str, entity_id: str, number: int) -> Any:
    # From the beginning: without a bound the history shows the last 30 days.
    always = 'occurredAt:>="1970-01-01T00:00:00Z"'
    q = f"entity:{quoted(entity)} entityId:{quoted(entity_id)} {always}"
    walk = _annals().history.list(q, page=number, size=PAGE_SIZE, value_limit=MAX_VALUE)
    return walk.page()


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 7 else 1


def _row(entry: Any) -> dict[str, Any]:
    changes = [
        {
            "path": path or "(all)",
            **{side: write(one[side]) for side in ("before", "after") if side in one},
        }
        for path, one in entry["paths"].items()
    ]
    return {**entry, "changes": changes}
