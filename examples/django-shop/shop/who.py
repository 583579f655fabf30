"""Who makes the changes of a request: the signed-in user, and the customer they act for."""


def resolve(request):
    user = request.user
    if not user.is_authenticated:
        return None
    customer = request.POST.get("customer")
    return {"actor_id": user.pk, "on_behalf_of": {"name": customer} if customer else None}
