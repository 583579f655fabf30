from __future__ import annotations

from django.apps import AppConfig


class AnnalsConfig(AppConfig):
    name = "annals.django"
    label = "annals"
    verbose_name = "Annals"

    def ready(self) -> None:
        from annals.django._attribution import attribute_connections

        attribute_connections()
