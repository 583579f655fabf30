const history = document.querySelector('annals-history');

// The shop's own server knows who is signed in. It asks Annals for a token and hands over the answer as it is.
history.getToken = async () => {
  const response = await fetch('/viewer-token', { method: 'POST' });
  if (!response.ok) throw new Error(`No token: ${response.status}`);
  return await response.json();
};

history.messages = {
  entities: { order: 'Order', customer: 'Your account' },
  fields: {
    'items.*.product': 'Item {n}',
    'items.*.quantity': 'Quantity of item {n}',
    'items.*.price': 'Price of item {n}',
    'shippingAddress.street': 'Street',
    'shippingAddress.city': 'City',
    'customer.id': 'Customer number',
    'customer.name': 'Customer',
    internalNote: 'Note of the shop',
    internalRating: 'Rating of the shop',
  },
  values: {
    status: { OPEN: 'received', PAID: 'paid', SHIPPED: 'on its way', DELIVERED: 'delivered', CANCELLED: 'cancelled' },
  },
  actors: { system: 'Nordic Desk', external: 'Delivery service' },
};
