import { sql } from 'kysely';
import type { Database } from '../src/postgres/database.ts';

/** JSON text: the `metadata` of a document of version 1. */
export const metadata = '{"version":1,"createdAt":"2026-01-01T00:00:00.000Z","modifiedAt":"2026-01-01T00:00:00.000Z"}';

/** Makes a type in the database itself, without a change entry. */
export async function insertType(db: Database, tenant: string, id: string): Promise<void> {
  const type = `{"id":"${id}","name":{"en":"${id}"},"metadata":${metadata}}`;
  await sql`insert into custom_entity (tenant, id, version, document, fields)
    values (${tenant}, ${id}, 1, ${type}, ${type}::jsonb)`.execute(db);
}
