import annals
from django.core.management.base import BaseCommand

from shop.models import Product


class Command(BaseCommand):
    help = "Fills the stock of products that are sold out."

    @annals.context(actor="nightly restock")
    def handle(self, *args, **options):
        Product.objects.filter(stock=0).update(stock=10)
