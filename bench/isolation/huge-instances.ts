import { sql } from 'kysely';
import type { Database } from '../../src/db/database.ts';

const meta = '{"version":1,"createdAt":"2026-01-01T00:00:00.000Z","modifiedAt":"2026-01-01T00:00:00.000Z"}';

/** Makes the type HUGE with the instances h1, h2 and so on, each with a text of so many bytes. */
export async function fillWithHugeInstances(
  db: Database,
  tenant: string,
  { instances, bytes }: { instances: number; bytes: number },
): Promise<void> {
  const type = `{"id":"HUGE","name":{"en":"Huge"},"metadata":${meta}}`;
  await sql`insert into custom_entity (tenant, id, version, document, fields)
    values (${tenant}, 'HUGE', 1, ${type}, ${type}::jsonb)`.execute(db);
  await sql`
    insert into custom_instance (tenant, type, id, version, document, fields)
    select ${tenant}, 'HUGE', id, 1, document, document::jsonb
      from (select 'h' || n as id, format('{"id":"h%s","metadata":%s,"text":"%s"}', n, ${meta}::text,
          repeat('x', ${bytes}::integer)) as document
        from generate_series(1, ${instances}::bigint) n) made`.execute(db);
}
