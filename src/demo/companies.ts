import { inventAddress, inventPerson, staff } from './people.ts';
import type { Shop } from './shop.ts';

const names = [
  ['Kontor', 'Bistro', 'Hotel', 'Kaffebar', 'Studio', 'Atelier', 'Werk'],
  ['Nordlicht', 'am Anger', 'Fünf Linden', '& Søn', 'Zur Mühle', 'Três Rios', 'Papillon', 'Višeň', 'Elvebakken'],
] as const;

/** A business opens an account. */
export function openCompany(shop: Shop): void {
  const { random } = shop;
  const number = shop.nextNumber('company', 201);
  const { firstName, lastName, email } = inventPerson(random, number);
  shop.insert('company', `B${number}`, random.pick(staff.sales), {
    name: `${random.pick(names[0])} ${random.pick(names[1])}`,
    taxNumber: `XX-${random.integer(10_000, 99_999)}`,
    address: inventAddress(random),
    contacts: [{ name: `${firstName} ${lastName}`, email }],
    terms: { paymentDays: 14, creditLimit: random.integer(1, 8) * 500 },
  });
}

/** A business gets other terms or contacts, or moves. Rarely one closes its account. */
export function editCompany(shop: Shop): void {
  const { random } = shop;
  const companies = shop.ids('company');
  const id = random.pick(companies);
  const actor = random.pick(staff.sales);
  if (companies.length > 15 && random.chance(0.06)) {
    shop.delete('company', id, actor);
    return;
  }
  const address = inventAddress(random);
  const { firstName, lastName, email } = inventPerson(random, random.integer(1, 99));
  shop.update('company', id, actor, (draft) => {
    switch (random.weighted([4, 3, 2, 2])) {
      case 0:
        draft.terms.creditLimit += 500 * random.integer(1, 4);
        break;
      case 1:
        draft.terms.paymentDays = draft.terms.paymentDays === 14 ? 30 : 14;
        break;
      case 2:
        draft.address = address;
        break;
      default:
        if (draft.contacts.length < 3) draft.contacts.push({ name: `${firstName} ${lastName}`, email });
        else draft.contacts.shift();
    }
  });
}
