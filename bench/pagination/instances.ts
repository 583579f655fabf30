import { sql } from 'kysely';
import type { Context } from '../../src/context.ts';
import { createClient } from '../../src/oauth/clients.ts';

/** Made in the database itself, since what is measured is reading. */
export async function fill({ db }: Context, instances: number): Promise<void> {
  const meta = `{"version":1,"createdAt":"2026-01-01T00:00:00.000Z","modifiedAt":"2026-01-01T00:00:00.000Z"}`;
  const type = `{"id":"PRODUCT","name":{"en":"Product"},"metadata":${meta}}`;
  await sql`insert into custom_entity (tenant, id, version, document, fields)
    values ('bench', 'PRODUCT', 1, ${type}, ${type}::jsonb)`.execute(db);
  await sql`
    insert into custom_instance (tenant, type, id, version, document, fields)
    select 'bench', 'PRODUCT', id, 1, document, document::jsonb
      from (
        select md5(n::text)::uuid::text as id, format(
          '{"id":"%s","name":"Product %s","metadata":%s,"price":%s,"category":"category %s","createdOn":"%s","stock":%s,"tags":["a","b"]}',
          md5(n::text)::uuid, n * 7919 % 1000003, ${meta}::text, (n * 104729 % 500000) / 100.0, n % 40,
          to_char(timestamp '2020-01-01' + n * 7919 % 200000000 * interval '1 second', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
          n % 1000) as document
        from generate_series(1, ${instances}::bigint) n
      ) made`.execute(db);
}

export async function tokenOf({ db }: Context, baseUrl: string): Promise<string> {
  const { clientId, clientSecret } = await createClient(db, { tenant: 'bench', scope: 'schema.custominstance_read' });
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: clientSecret,
  });
  const response = await fetch(`${baseUrl}/oauth/token`, { method: 'POST', body });
  const { access_token: token } = (await response.json()) as { access_token: string };
  return token;
}
