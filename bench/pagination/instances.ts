import { sql } from 'kysely';
import type { Context } from '../../src/context/context.ts';
import { insertType, metadata } from '../custom-type.ts';

/** Made in the database itself, since what is measured is reading. */
export async function fill({ db }: Context, instances: number): Promise<void> {
  await insertType(db, 'bench', 'PRODUCT');
  await sql`
    insert into custom_instance (tenant, type, id, version, document, fields)
    select 'bench', 'PRODUCT', id, 1, document, document::jsonb
      from (
        select md5(n::text)::uuid::text as id, format(
          '{"id":"%s","name":"Product %s","metadata":%s,"price":%s,"category":"category %s","createdOn":"%s","stock":%s,"tags":["a","b"]}',
          md5(n::text)::uuid, n * 7919 % 1000003, ${metadata}::text, (n * 104729 % 500000) / 100.0, n % 40,
          to_char(timestamp '2020-01-01' + n * 7919 % 200000000 * interval '1 second', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
          n % 1000) as document
        from generate_series(1, ${instances}::bigint) n
      ) made`.execute(db);
}
