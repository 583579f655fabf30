import { sql } from 'kysely';
import { insertType, metadata } from '../../custom-type.ts';
import { type Attack, repeatedly } from './attack.ts';

const instances = Number(process.env.INSTANCES ?? 200_000);

/** 14 lists at once: sorts without an index, and 120 ORed globs. Each client gives up after 5 seconds and asks again. */
export const attack: Attack = {
  row: 1,
  title: 'lists without an index, 14 at once',

  async fill(db, tenant) {
    await insertType(db, tenant, 'PRODUCT');
    await sql`
      insert into custom_instance (tenant, type, id, version, document, fields)
      select ${tenant}, 'PRODUCT', id, 1, document, document::jsonb
        from (select md5(n::text)::uuid::text as id, format(
            '{"id":"%s","name":"Product %s","metadata":%s,"price":%s,"category":"category %s","stock":%s}',
            md5(n::text)::uuid, n * 7919 % 1000003, ${metadata}::text, (n * 104729 % 500000) / 100.0, n % 40, n % 1000
          ) as document from generate_series(1, ${instances}::bigint) n) made`.execute(db);
  },

  async run({ tenant, call, count }, signal) {
    const path = `/schema/${tenant}/custom-entities/PRODUCT/instances`;
    const globs = Array.from({ length: 120 }, (_, index) => `(name:*${index}x*y*)`).join(' OR ');
    const q = `compoundLogicalQuery:(${globs})`;
    await repeatedly(14, signal, async (place, turn) => {
      const asked =
        (place + turn) % 2 === 0
          ? call(
              `${path}?sort=${['price', 'stock:DESC', 'name'][turn % 3]},category&pageSize=60&pageNumber=${1 + turn}`,
            )
          : call(`${path}/search`, { method: 'POST', body: JSON.stringify({ q }) });
      const response = await asked;
      await response.arrayBuffer();
      count(response.status);
    });
  },
};
