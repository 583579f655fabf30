from decimal import Decimal

from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.db.models import F
from django.http import JsonResponse
from django.views.decorators.http import require_POST

from shop.models import Order, Product


@require_POST
@login_required
def place_order(request):
    with transaction.atomic():
        product = Product.objects.select_for_update().get(pk=request.POST["product"])
        order = Order.objects.create(product=product, quantity=request.POST["quantity"])
        Product.objects.filter(pk=product.pk).update(stock=F("stock") - order.quantity)
    return JsonResponse({"order": order.pk}, status=201)


@require_POST
@login_required
def reduce_prices(request):
    percent = Decimal(request.POST["percent"])
    count = Product.objects.update(price=F("price") * (100 - percent) / 100)
    return JsonResponse({"products": count})
