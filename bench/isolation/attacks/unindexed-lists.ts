import { type Attack, insertInstances, repeatedly, send } from './attack.ts';

const instances = `select md5(n::text)::uuid::text as id, format(
    '"name":"Product %s","price":%s,"category":"category %s","stock":%s',
    n * 7919 % 1000003, (n * 104729 % 500000) / 100.0, n % 40, n % 1000) as members
  from generate_series(1, ${Number(process.env.INSTANCES ?? 200_000)}::bigint) n`;

/** 14 lists at once: sorts without an index, and 120 ORed globs. Each client gives up after 5 seconds and repeats. */
export const attack: Attack = {
  row: 1,
  title: 'lists without an index, 14 at once',

  fill: (db, tenant) => insertInstances(db, tenant, 'PRODUCT', instances),

  async run(attacker, signal) {
    const path = `/schema/${attacker.tenant}/custom-entities/PRODUCT/instances`;
    const globs = Array.from({ length: 120 }, (_, index) => `(name:*${index}x*y*)`).join(' OR ');
    await repeatedly(14, signal, async (place, turn) => {
      const sort = ['price', 'stock:DESC', 'name'][turn % 3];
      if ((place + turn) % 2 === 0) {
        await send(attacker, 'GET', `${path}?sort=${sort},category&pageSize=60&pageNumber=${1 + turn}`);
      } else await send(attacker, 'POST', `${path}/search`, { q: `compoundLogicalQuery:(${globs})` });
    });
  },
};
