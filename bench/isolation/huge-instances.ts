import { sql } from 'kysely';
import type { Database } from '../../src/postgres/database.ts';
import { insertType, metadata } from '../custom-type.ts';

/** Makes the type HUGE with the instances h1, h2 and so on, each with a text of so many bytes. */
export async function fillWithHugeInstances(
  db: Database,
  tenant: string,
  { instances, bytes }: { instances: number; bytes: number },
): Promise<void> {
  await insertType(db, tenant, 'HUGE');
  await sql`
    insert into custom_instance (tenant, type, id, version, document, fields)
    select ${tenant}, 'HUGE', id, 1, document, document::jsonb
      from (select 'h' || n as id, format('{"id":"h%s","metadata":%s,"text":"%s"}', n, ${metadata}::text,
          repeat('x', ${bytes}::integer)) as document
        from generate_series(1, ${instances}::bigint) n) made`.execute(db);
}
