import type { Address, Order } from './documents.ts';
import { cents, chooseItems, sumOf, totalsOf } from './line-items.ts';
import { external, staff, system, unknown } from './people.ts';
import { hourInMilliseconds } from './rhythm.ts';
import type { Shop } from './shop.ts';

/** A customer buys: mostly alone, sometimes as a guest who is not signed in, sometimes by telephone. */
export function placeOrder(shop: Shop): void {
  const { random } = shop;
  const customerId = random.pick(shop.ids('customer'));
  const customer = shop.get('customer', customerId);
  const name = `${customer.firstName} ${customer.lastName}`;
  const channel = random.weighted([70, 18, shop.isStaffed ? 12 : 0]);
  const items = chooseItems(shop, random.integer(1, 4), 4);
  const [address] = customer.addresses.toReversed();
  if (items.length === 0 || address === undefined) return;
  const coupon = random.chance(0.12) ? redeemableCoupon(shop) : null;
  const { street, zip, city, country }: Address = address;
  const number = openOrder(shop, [name, unknown, random.pick(staff.sales)][channel] ?? name, {
    site: country === 'DE' || country === 'AT' || country === 'CH' ? 'dach' : 'main',
    status: 'CREATED',
    customer: { id: customerId, name },
    items,
    coupon,
    shippingAddress: { street, zip, city, country },
    payment: { method: random.pick(['CARD', 'CARD', 'INVOICE', 'WALLET']), status: 'OPEN' },
    totals: totalsOf(items, coupon === null ? 0 : discountOf(shop, coupon, sumOf(items))),
    shipments: [],
  });
  if (coupon !== null) {
    shop.update('coupon', coupon, system, (draft) => {
      draft.redemptions.used += 1;
    });
  }
  // Most payments go through at once; the others are left for advanceOrder.
  if (random.chance(0.8)) confirm(shop, number);
}

/** Stores a new order and gives its number. */
export function openOrder(shop: Shop, actor: string, order: Order): string {
  const number = String(shop.nextNumber('order', 10_001));
  shop.insert('order', number, actor, order);
  return number;
}

/** Somebody, or the shop itself, brings the order that waits longest one step further. */
export function advanceOrder(shop: Shop): void {
  const { random } = shop;
  const [number] = shop
    .idsWhere('order', (order, id) => canGoOn(shop, order, shop.restingTime('order', id)))
    .slice(random.integer(0, 3));
  if (number === undefined) return;
  const { status } = shop.get('order', number);
  if (status === 'CREATED') (random.chance(0.93) ? confirm : decline)(shop, number);
  else if (status === 'CONFIRMED') ship(shop, number);
  else (random.chance(0.95) ? complete : takeBack)(shop, number);
}

/** Sales mends an order that has not left yet: other quantities, one item more or fewer, another address, a note. */
export function editOrder(shop: Shop): void {
  const { random } = shop;
  const open = shop.idsWhere('order', (order) => order.status === 'CREATED' || order.status === 'CONFIRMED');
  if (open.length === 0) return;
  const number = random.pick(open);
  const extra = chooseItems(shop, 1, 3);
  shop.update('order', number, random.pick(staff.sales), (draft) => {
    const item = random.pick(draft.items);
    switch (random.weighted([4, 3, draft.items.length > 1 ? 3 : 0, 2, 2])) {
      case 0:
        item.quantity += random.integer(1, 3);
        break;
      case 1:
        draft.items.push(...extra.filter(({ product }) => draft.items.every((other) => other.product !== product)));
        break;
      case 2:
        draft.items = draft.items.filter((other) => other !== item);
        break;
      case 3:
        draft.shippingAddress.street = `${draft.shippingAddress.street.replace(/ c\/o .*/, '')} c/o Reception`;
        return;
      default:
        draft.note = random.pick([
          'Ring twice',
          'Leave with the neighbours',
          'Gift: no prices on the slip',
          'Call first',
        ]);
        return;
    }
    draft.totals = totalsOf(
      draft.items,
      draft.coupon === null ? 0 : discountOf(shop, draft.coupon, sumOf(draft.items)),
    );
  });
}

// A parcel is on its way for most of a day; somebody has to be there to pack it.
function canGoOn(shop: Shop, { status }: Order, restingTime: number): boolean {
  if (status === 'SHIPPED') return restingTime > 20 * hourInMilliseconds;
  return (status === 'CREATED' || (status === 'CONFIRMED' && shop.isStaffed)) && restingTime > hourInMilliseconds;
}

function confirm(shop: Shop, number: string): void {
  if (shop.get('order', number).payment.method !== 'INVOICE') {
    shop.update('order', number, external, (draft) => {
      draft.payment.status = 'PAID';
    });
  }
  shop.update('order', number, system, { status: 'CONFIRMED' });
}

function decline(shop: Shop, number: string): void {
  shop.update('order', number, external, (draft) => {
    draft.payment.status = 'FAILED';
  });
  shop.update('order', number, system, { status: 'DECLINED' });
}

function ship(shop: Shop, number: string): void {
  const carrier = shop.random.pick(['Parcelnorth', 'Hermod Express', 'Quickbird']);
  const trackingNumber = `${carrier.slice(0, 2).toUpperCase()}${shop.random.integer(100_000_000, 999_999_999)}`;
  shop.update('order', number, shop.random.pick(staff.warehouse), (draft) => {
    draft.status = 'SHIPPED';
    draft.shipments.push({ carrier, trackingNumber });
  });
}

function complete(shop: Shop, number: string): void {
  shop.update('order', number, system, (draft) => {
    draft.status = 'COMPLETED';
    draft.payment.status = 'PAID';
  });
}

function takeBack(shop: Shop, number: string): void {
  const actor = shop.isStaffed ? shop.random.pick(staff.service) : system;
  shop.update('order', number, actor, (draft) => {
    draft.status = 'RETURNED';
    draft.payment.status = 'REFUNDED';
  });
}

function redeemableCoupon(shop: Shop): string | null {
  const usable = shop.idsWhere(
    'coupon',
    ({ active, redemptions: { used, limit } }) => active && (limit === null || used < limit),
  );
  return usable.length === 0 ? null : shop.random.pick(usable);
}

/** What a coupon takes off; nothing where the coupon has been deleted since. */
function discountOf(shop: Shop, couponId: string, gross: number): number {
  const coupon = shop.find('coupon', couponId);
  if (coupon === undefined) return 0;
  const { type, value } = coupon.discount;
  return type === 'PERCENT' ? cents((gross * value) / 100) : value;
}
