import { editCompany, openCompany } from './companies.ts';
import { editCustomer, forgetCustomer, rearrangeGroups, registerCustomer } from './customers.ts';
import type { DemoChange } from './demo-change.ts';
import { closeTheDay, editCoupon, editSegment, issueCoupon } from './marketing.ts';
import { administrate, openShop } from './opening.ts';
import { advanceOrder, editOrder, placeOrder } from './orders.ts';
import { changeRange, editProduct, reportStock } from './products.ts';
import { advanceQuote, draftQuote } from './quotes.ts';
import { Random } from './random.ts';
import { dayInMilliseconds, daysOfHistory, hourInMilliseconds, momentsOfDay, startOfDay } from './rhythm.ts';
import { Shop } from './shop.ts';
import { advanceClaim, openClaim } from './warranty-claims.ts';

/** What goes on in the shop: how often while somebody is at a desk, and how often otherwise. */
const activities: readonly { run(shop: Shop): void; staffed: number; unstaffed: number }[] = [
  { run: placeOrder, staffed: 13, unstaffed: 18 },
  { run: advanceOrder, staffed: 42, unstaffed: 34 },
  { run: editOrder, staffed: 6, unstaffed: 0 },
  { run: registerCustomer, staffed: 4, unstaffed: 8 },
  { run: editCustomer, staffed: 5, unstaffed: 8 },
  { run: forgetCustomer, staffed: 0.5, unstaffed: 0 },
  { run: rearrangeGroups, staffed: 5, unstaffed: 0 },
  { run: openCompany, staffed: 0.7, unstaffed: 0 },
  { run: editCompany, staffed: 2, unstaffed: 0 },
  { run: reportStock, staffed: 4, unstaffed: 5 },
  { run: editProduct, staffed: 6, unstaffed: 0 },
  { run: changeRange, staffed: 0.8, unstaffed: 0 },
  { run: issueCoupon, staffed: 0.8, unstaffed: 0 },
  { run: editCoupon, staffed: 1, unstaffed: 0 },
  { run: editSegment, staffed: 1, unstaffed: 0 },
  { run: draftQuote, staffed: 2, unstaffed: 0 },
  { run: advanceQuote, staffed: 6, unstaffed: 1 },
  { run: openClaim, staffed: 0.8, unstaffed: 0.6 },
  { run: advanceClaim, staffed: 3, unstaffed: 0 },
  { run: administrate, staffed: 0.5, unstaffed: 0 },
];

/**
 * The history of an invented shop over the last 90 days, oldest change first, every change before `now` (milliseconds
 * since 1970). The same seed on the same UTC day gives the same history: later that day it only goes on further.
 */
export function* generateShopHistory({ seed, now }: { seed: number; now: number }): Generator<DemoChange> {
  const random = new Random(seed);
  const shop = new Shop(random);
  const today = startOfDay(now);
  for (let age = 0; age < daysOfHistory; age++) {
    for (const change of changesOfDay(shop, today - (daysOfHistory - 1 - age) * dayInMilliseconds, age)) {
      if (change.at >= now) return;
      yield change;
    }
  }
}

function* changesOfDay(shop: Shop, midnight: number, age: number): Generator<DemoChange> {
  if (age === 0) {
    shop.proceedTo(midnight + 6 * hourInMilliseconds);
    openShop(shop);
    yield* shop.takeChanges();
  } else {
    shop.proceedTo(midnight + 2 * hourInMilliseconds);
    closeTheDay(shop);
    yield* shop.takeChanges();
  }
  for (const moment of momentsOfDay(midnight, age, shop.random)) {
    shop.proceedTo(moment);
    const weights = activities.map(({ staffed, unstaffed }) => (shop.isStaffed ? staffed : unstaffed));
    activities[shop.random.weighted(weights)]?.run(shop);
    yield* shop.takeChanges();
  }
}
