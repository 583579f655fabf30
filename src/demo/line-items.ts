import type { LineItem, Order } from './documents.ts';
import type { Shop } from './shop.ts';

/** Rounds an amount of money to cents. */
export function cents(amount: number): number {
  return Math.round(amount * 100) / 100;
}

/** Up to `count` different products that are for sale, at today's price. */
export function chooseItems(shop: Shop, count: number, maxOfOne: number): LineItem[] {
  const forSale = shop.idsWhere('product', (product) => product.published && product.stock > 0);
  return shop.random.sample(forSale, count).map((product) => {
    const { name, price } = shop.get('product', product);
    // People buy one of an expensive product.
    const quantity = price.amount > 100 ? 1 : shop.random.integer(1, maxOfOne);
    return { product, name: name.en, quantity, unitPrice: price.amount };
  });
}

export function sumOf(items: readonly LineItem[]): number {
  return cents(items.reduce((sum, item) => sum + item.quantity * item.unitPrice, 0));
}

/** An order's totals: prices include the tax, which is 19 % for everything here. */
export function totalsOf(items: readonly LineItem[], discount: number): Order['totals'] {
  const gross = cents(Math.max(0, sumOf(items) - discount));
  const net = cents(gross / 1.19);
  return { net, tax: cents(gross - net), gross, currency: 'EUR' };
}
