import type { LineItem } from './documents.ts';
import { cents } from './line-items.ts';
import { staff, unknown } from './people.ts';
import { hourInMilliseconds } from './rhythm.ts';
import type { Shop } from './shop.ts';

// What breaks, by the category of the product; of everything else nobody claims anything.
const complaints = {
  machines: ['Leaks at the valve', 'Does not heat', 'Arrived with a dent', 'Handle came loose'],
  grinders: ['Grinds unevenly', 'Gets stuck', 'Arrived with a dent', 'Louder than a tram'],
};
const findings = ['seal worn', 'thermostat broken', 'burrs misaligned', 'transport damage', 'used as a doorstop'];

/** A buyer reports something broken, through the form of the shop, where nobody signs in. */
export function openClaim(shop: Shop): void {
  const { random } = shop;
  const delivered = shop.idsWhere('order', ({ status, items }) => {
    return status === 'COMPLETED' && items.some((item) => kindOf(shop, item) !== undefined);
  });
  if (delivered.length === 0) return;
  const order = random.pick(delivered);
  for (const item of shop.get('order', order).items) {
    const kind = kindOf(shop, item);
    if (kind === undefined) continue;
    shop.insert('WARRANTY_CLAIM', `WC-${shop.nextNumber('claim', 301)}`, unknown, {
      status: 'OPEN',
      order,
      product: item.product,
      amount: cents(item.quantity * item.unitPrice),
      complaint: random.pick(complaints[kind]),
      findings: [],
      resolution: null,
    });
    return;
  }
}

/** Service looks at the oldest claim, decides it, and closes it. */
export function advanceClaim(shop: Shop): void {
  const { random } = shop;
  const [id] = shop.idsWhere(
    'WARRANTY_CLAIM',
    ({ status }, claim) => status !== 'CLOSED' && shop.restingTime('WARRANTY_CLAIM', claim) > 3 * hourInMilliseconds,
  );
  if (id === undefined) return;
  shop.update('WARRANTY_CLAIM', id, random.pick(staff.service), (draft) => {
    switch (draft.status) {
      case 'OPEN':
        draft.status = 'IN_INSPECTION';
        break;
      case 'IN_INSPECTION':
        draft.findings = random.sample(findings, random.integer(1, 2));
        draft.status = draft.findings.includes('used as a doorstop') ? 'REJECTED' : 'APPROVED';
        break;
      default:
        draft.resolution =
          draft.status === 'APPROVED' ? random.pick(['repaired', 'replaced', 'refunded']) : 'sent back';
        draft.status = 'CLOSED';
    }
  });
}

function kindOf(shop: Shop, { product }: LineItem): keyof typeof complaints | undefined {
  const categories = shop.find('product', product)?.categories ?? [];
  return (['machines', 'grinders'] as const).find((kind) => categories.includes(kind));
}
