import { staff, unknown } from './people.ts';
import { hourInMilliseconds } from './rhythm.ts';
import type { Shop } from './shop.ts';

const complaints = [
  'Leaks at the valve',
  'Does not heat',
  'Grinds unevenly',
  'Arrived with a dent',
  'Handle came loose',
];
const findings = ['seal worn', 'thermostat broken', 'burrs misaligned', 'transport damage', 'used as a doorstop'];

/** A buyer reports something broken, through the form of the shop, where nobody signs in. */
export function openClaim(shop: Shop): void {
  const { random } = shop;
  const delivered = shop.idsWhere('order', (order) => order.status === 'COMPLETED');
  if (delivered.length === 0) return;
  const order = random.pick(delivered);
  shop.insert('WARRANTY_CLAIM', `WC-${shop.nextNumber('claim', 301)}`, unknown, {
    status: 'OPEN',
    order,
    product: random.pick(shop.get('order', order).items).product,
    complaint: random.pick(complaints),
    findings: [],
    resolution: null,
  });
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
