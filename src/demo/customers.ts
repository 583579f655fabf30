import type { Customer } from './documents.ts';
import { inventAddress, inventPerson, inventPhone, mailAddress, staff, system, unknown } from './people.ts';
import type { Shop } from './shop.ts';

/** Somebody opens an account: as yet nobody knows them, later they are known by their name. */
export function registerCustomer(shop: Shop): void {
  const { random } = shop;
  const byTelephone = shop.isStaffed && random.chance(0.2);
  const number = shop.nextNumber('customer', 1001);
  const companies = shop.ids('company');
  const customer: Customer = {
    ...inventPerson(random, number),
    company: companies.length > 0 && random.chance(0.25) ? random.pick(companies) : null,
    addresses: [{ kind: 'billing', ...inventAddress(random) }],
    preferences: { newsletter: random.chance(0.4), language: random.pick(['en', 'de', 'da', 'fr', 'pl']) },
  };
  if (random.chance(0.5)) customer.phone = inventPhone(random);
  shop.insert('customer', `C${number}`, byTelephone ? random.pick(staff.sales) : unknown, customer);
  if (random.chance(0.3)) joinGroup(shop, `C${number}`, system);
}

/** A customer moves, marries, or changes what they want to hear from the shop. */
export function editCustomer(shop: Shop): void {
  const { random } = shop;
  const id = random.pick(shop.ids('customer'));
  const { firstName, lastName } = shop.get('customer', id);
  const actor = shop.isStaffed && random.chance(0.3) ? random.pick(staff.service) : `${firstName} ${lastName}`;
  const address = inventAddress(random);
  const phone = inventPhone(random);
  const { lastName: newName } = inventPerson(random, 0);
  shop.update('customer', id, actor, (draft) => {
    const [first] = draft.addresses;
    switch (random.weighted([5, 3, 3, 4, 1])) {
      case 0:
        if (first !== undefined) Object.assign(first, address);
        break;
      case 1:
        if (draft.addresses.length < 3) draft.addresses.push({ kind: 'shipping', ...address });
        else draft.addresses.pop();
        break;
      case 2:
        draft.phone = phone;
        break;
      case 3:
        draft.preferences.newsletter = !draft.preferences.newsletter;
        break;
      default:
        draft.lastName = newName;
        draft.email = mailAddress(firstName, newName, random.integer(1, 99));
    }
  });
}

/** A customer asks to be forgotten: the account goes, and its places in groups with it. Orders remain. */
export function forgetCustomer(shop: Shop): void {
  const ids = shop.ids('customer');
  if (ids.length < 40) return;
  const customer = shop.random.pick(ids);
  for (const assignment of shop.idsWhere('group-assignment', (document) => document.customer === customer)) {
    shop.delete('group-assignment', assignment, system);
  }
  shop.delete('customer', customer, shop.random.pick(staff.service));
}

/** Sales puts a customer into a group, takes one out, or lets one who left come back. */
export function rearrangeGroups(shop: Shop): void {
  const { random } = shop;
  const actor = random.pick([...staff.sales, ...staff.marketing]);
  const assignments = shop.ids('group-assignment');
  if (assignments.length > 10 && random.chance(0.35)) {
    const assignment = random.pick(assignments);
    if (random.chance(0.4)) {
      shop.update('group-assignment', assignment, actor, (draft) => {
        draft.role = draft.role === 'MEMBER' ? 'MANAGER' : 'MEMBER';
      });
    } else {
      shop.delete('group-assignment', assignment, actor);
    }
  } else {
    joinGroup(shop, random.pick(shop.ids('customer')), actor);
  }
}

// The id consists of group and customer, so a customer that comes back into a group has the same document again.
function joinGroup(shop: Shop, customer: string, actor: string): void {
  const group = shop.random.pick(shop.ids('group'));
  const id = `${group}.${customer}`;
  if (shop.find('group-assignment', id) === undefined) {
    shop.insert('group-assignment', id, actor, { group, customer, role: 'MEMBER' });
  }
}
