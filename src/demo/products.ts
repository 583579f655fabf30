import { cents } from './line-items.ts';
import { external, staff } from './people.ts';
import type { Shop } from './shop.ts';

const descriptions = [
  'Made for small kitchens.',
  'The one our own office uses.',
  'Tested for 20,000 cups.',
  'Back in stock, with the new seal.',
] as const;

/** The warehouse system reports stock: it writes the whole product anew and never touches prices. */
export function reportStock(shop: Shop): void {
  const { random } = shop;
  for (const code of random.sample(shop.ids('product'), random.integer(1, 3))) {
    shop.replace('product', code, external, (draft) => {
      draft.stock = draft.stock < 15 ? draft.stock + random.integer(40, 120) : draft.stock - random.integer(1, 14);
    });
  }
}

/** The catalogue team changes a price, a text, attributes or categories. */
export function editProduct(shop: Shop): void {
  const { random } = shop;
  const code = random.pick(shop.ids('product'));
  shop.update('product', code, random.pick(staff.catalogue), (draft) => {
    switch (random.weighted([6, 2, 2, 2, 1])) {
      case 0:
        draft.price.amount = cents(draft.price.amount * random.pick([0.9, 0.95, 0.98, 1.02, 1.05, 1.1]));
        break;
      case 1:
        draft.description = random.pick(descriptions);
        break;
      case 2:
        draft.attributes.colour = random.pick(['black', 'cream', 'copper', 'sea green']);
        break;
      case 3:
        draft.categories = draft.categories.includes('bestseller')
          ? draft.categories.filter((category) => category !== 'bestseller')
          : [...draft.categories, 'bestseller'];
        break;
      default:
        draft.published = !draft.published;
    }
  });
}

/** A product leaves the range, or one that left comes back under its old code at a new price. */
export function changeRange(shop: Shop): void {
  const { random } = shop;
  const actor = random.pick(staff.catalogue);
  const [returning] = shop.deleted('product');
  if (returning !== undefined && random.chance(0.6)) {
    const [code, { price, ...rest }] = returning;
    shop.insert('product', code, actor, { ...rest, price: { ...price, amount: cents(price.amount * 1.08) } });
  } else {
    shop.delete('product', random.pick(shop.ids('product')), actor);
  }
}
