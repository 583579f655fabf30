import type { Quote } from './documents.ts';
import { cents, chooseItems, sumOf, totalsOf } from './line-items.ts';
import { day } from './marketing.ts';
import { openOrder } from './orders.ts';
import { staff, system } from './people.ts';
import { dayInMilliseconds, hourInMilliseconds } from './rhythm.ts';
import type { Shop } from './shop.ts';

/** Sales offers a company a larger delivery. */
export function draftQuote(shop: Shop): void {
  const { random } = shop;
  const id = random.pick(shop.ids('company'));
  const items = chooseItems(shop, random.integer(2, 5), 40);
  shop.insert('quote', `Q-${shop.nextNumber('quote', 501)}`, random.pick(staff.sales), {
    status: 'DRAFT',
    company: { id, name: shop.get('company', id).name },
    items,
    total: sumOf(items),
    validUntil: day(shop.now + 21 * dayInMilliseconds),
    order: null,
  });
}

/** A quote is worked over, sent, and answered by the company; one that is not answered runs out. */
export function advanceQuote(shop: Shop): void {
  const { random } = shop;
  const [id] = shop
    .idsWhere(
      'quote',
      ({ status }, quoteId) =>
        (status === 'DRAFT' || status === 'SENT') && shop.restingTime('quote', quoteId) > 2 * hourInMilliseconds,
    )
    .slice(random.integer(0, 2));
  if (id === undefined) return;
  const quote = shop.get('quote', id);
  if (quote.status === 'SENT') answer(shop, id, quote);
  else if (random.chance(0.45)) haggle(shop, id);
  else shop.update('quote', id, random.pick(staff.sales), { status: 'SENT' });
}

function haggle(shop: Shop, id: string): void {
  const { random } = shop;
  shop.update('quote', id, random.pick(staff.sales), (draft) => {
    const item = random.pick(draft.items);
    if (random.chance(0.6)) item.unitPrice = cents(item.unitPrice * random.pick([0.9, 0.92, 0.95]));
    else item.quantity += 5;
    draft.total = sumOf(draft.items);
  });
}

function answer(shop: Shop, id: string, quote: Quote): void {
  const { random } = shop;
  if (quote.validUntil < day(shop.now)) {
    shop.update('quote', id, system, { status: 'EXPIRED' });
    return;
  }
  const buyers = shop.idsWhere('customer', ({ company: employer }) => employer === quote.company.id);
  const company = shop.find('company', quote.company.id);
  if (buyers.length === 0 || company === undefined || random.chance(0.3)) {
    shop.update('quote', id, random.pick(staff.sales), { status: 'DECLINED' });
    return;
  }
  const customer = random.pick(buyers);
  const { firstName, lastName } = shop.get('customer', customer);
  const name = `${firstName} ${lastName}`;
  const order = openOrder(shop, system, {
    site: 'main',
    status: 'CREATED',
    customer: { id: customer, name },
    items: structuredClone(quote.items),
    coupon: null,
    shippingAddress: company.address,
    payment: { method: 'INVOICE', status: 'OPEN' },
    totals: totalsOf(quote.items, 0),
    shipments: [],
  });
  shop.update('quote', id, name, { status: 'ACCEPTED', order });
}
