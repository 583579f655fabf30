import { staff, system } from './people.ts';
import { dayInMilliseconds } from './rhythm.ts';
import type { Shop } from './shop.ts';

const campaigns = ['WELCOME', 'ROAST', 'CREMA', 'FRIENDS', 'GRIND', 'COLDBREW', 'THANKS'] as const;

/** A new coupon for the coming weeks. */
export function issueCoupon(shop: Shop): void {
  const { random } = shop;
  const percent = random.chance(0.6);
  const value = percent ? random.pick([5, 10, 15, 20]) : random.pick([5, 7.5, 10]);
  const code = `${random.pick(campaigns)}${value * 10}-${shop.nextNumber('coupon', 11)}`;
  shop.insert('coupon', code, random.pick(staff.marketing), {
    name: percent ? `${value} % off` : `${value.toFixed(2)} EUR off`,
    discount: { type: percent ? 'PERCENT' : 'ABSOLUTE', value },
    validUntil: day(shop.now + random.integer(7, 30) * dayInMilliseconds),
    active: true,
    redemptions: { used: 0, limit: random.chance(0.5) ? random.integer(20, 80) : null },
  });
}

/** A coupon gets more time, more uses or another value. */
export function editCoupon(shop: Shop): void {
  const { random } = shop;
  const active = shop.idsWhere('coupon', (coupon) => coupon.active);
  if (active.length === 0) return;
  shop.update('coupon', random.pick(active), random.pick(staff.marketing), (draft) => {
    if (random.chance(0.5)) draft.validUntil = day(Date.parse(draft.validUntil) + 7 * dayInMilliseconds);
    else draft.redemptions.limit = (draft.redemptions.limit ?? 0) + 25;
  });
}

/** Marketing changes whom a segment takes in, and sometimes deletes one that is missed the next day. */
export function editSegment(shop: Shop): void {
  const { random } = shop;
  const actor = random.pick(staff.marketing);
  const [missed] = shop.deleted('segment');
  if (missed !== undefined) {
    shop.insert('segment', missed[0], actor, missed[1]);
    return;
  }
  const id = random.pick(shop.ids('segment'));
  if (random.chance(0.05)) {
    shop.delete('segment', id, actor);
    return;
  }
  shop.update('segment', id, actor, (draft) => {
    const criterion = random.pick(draft.criteria);
    if (typeof criterion.value === 'number' && random.chance(0.6)) criterion.value += random.integer(1, 4) * 10;
    else if (draft.criteria.length < 4) draft.criteria.push({ field: 'country', operator: 'IN', value: 'DE,AT,CH' });
    else draft.criteria.pop();
  });
}

/** What happens every night without anybody: segments are counted again, coupons that ran out are switched off. */
export function closeTheDay(shop: Shop): void {
  const { random } = shop;
  const today = day(shop.now);
  for (const segment of random.sample(shop.ids('segment'), 2)) {
    shop.update('segment', segment, system, (draft) => {
      draft.memberCount = Math.max(0, draft.memberCount + random.integer(-3, 6));
    });
  }
  for (const coupon of shop.idsWhere('coupon', ({ active, validUntil }) => active && validUntil < today)) {
    shop.update('coupon', coupon, system, { active: false });
  }
  const [oldest] = shop.idsWhere('coupon', ({ active }) => !active).slice(4);
  if (oldest !== undefined && random.chance(0.5)) shop.delete('coupon', oldest, system);
}

/** The date of a moment, UTC, as in `2026-02-28`. */
export function day(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}
