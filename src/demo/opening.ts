import { openingCatalogue } from './catalogue.ts';
import { openCompany } from './companies.ts';
import { registerCustomer } from './customers.ts';
import { issueCoupon } from './marketing.ts';
import { external, inventAddress, staff } from './people.ts';
import type { Shop } from './shop.ts';

/** The day before the doors open: sites, groups, segments, the catalogue from the old system, the first accounts. */
export function openShop(shop: Shop): void {
  const [administrator] = staff.administration;
  const [marketing] = staff.marketing;
  openSites(shop, administrator);
  shop.insert('group', 'baristas', administrator, group('Baristas', 'Baristi', 0.85));
  shop.insert('group', 'offices', administrator, group('Offices', 'Büros', 0.92));
  shop.insert('group', 'friends', administrator, group('Friends of the house', 'Freunde des Hauses', 0.9));
  shop.insert('group', 'resellers', administrator, group('Resellers', 'Wiederverkäufer', 0.8));
  shop.insert('segment', 'loyal', marketing, segment('Loyal customers', 'orderCount', 5));
  shop.insert('segment', 'big-baskets', marketing, segment('Big baskets', 'averageOrder', 250));
  shop.insert('segment', 'asleep', marketing, segment('Asleep for a while', 'daysSinceOrder', 60));
  shop.insert('segment', 'bean-lovers', marketing, segment('Bean lovers', 'beansPerMonth', 2));
  for (const [code, product] of openingCatalogue(shop.random)) shop.insert('product', code, external, product);
  for (let count = 0; count < 8; count++) openCompany(shop);
  for (let count = 0; count < 30; count++) registerCustomer(shop);
  issueCoupon(shop);
}

/** Administration now and then changes what a site offers, and renames or reprices a group. */
export function administrate(shop: Shop): void {
  const { random } = shop;
  const actor = random.pick(staff.administration);
  if (random.chance(0.5)) {
    shop.update('site', random.pick(shop.ids('site')), actor, (draft) => {
      const zone = random.pick(draft.shipping);
      if (random.chance(0.6)) zone.fee = random.pick([3.9, 4.5, 4.9, 5.5, 6.9]);
      else if (zone.countries.includes('FI')) zone.countries = zone.countries.filter((country) => country !== 'FI');
      else zone.countries.push('FI');
    });
  } else {
    shop.update('group', random.pick(shop.ids('group')), actor, (draft) => {
      draft.priceListFactor = random.pick([0.78, 0.8, 0.82, 0.85, 0.88, 0.9, 0.92, 0.95]);
    });
  }
}

function openSites(shop: Shop, actor: string): void {
  const shared = { active: true, currency: 'EUR', homeBase: inventAddress(shop.random) };
  shop.insert('site', 'main', actor, {
    ...shared,
    name: 'Main shop',
    default: true,
    languages: ['en', 'de', 'da', 'fr'],
    shipping: [
      { zone: 'Nordic', countries: ['DK', 'NO', 'SE'], fee: 5.5, freeFrom: 80 },
      { zone: 'Europe', countries: ['CZ', 'FR', 'NL', 'PL'], fee: 6.9, freeFrom: 100 },
    ],
  });
  shop.insert('site', 'dach', actor, {
    ...shared,
    name: 'Shop for DE, AT and CH',
    default: false,
    languages: ['de', 'en'],
    shipping: [{ zone: 'DACH', countries: ['DE', 'AT', 'CH'], fee: 4.9, freeFrom: 60 }],
  });
}

function group(en: string, de: string, priceListFactor: number) {
  return { name: { en, de }, description: `Price list ${en}`, priceListFactor };
}

function segment(name: string, field: string, value: number) {
  return { name, site: 'main', criteria: [{ field, operator: 'AT_LEAST', value }], memberCount: 0 };
}
