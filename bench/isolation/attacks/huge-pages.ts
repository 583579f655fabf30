import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Attack } from './attack.ts';
import { repeatedly } from './attack.ts';

const instances = 400;
const bytes = 1_000_000;
const meta = '{"version":1,"createdAt":"2026-01-01T00:00:00.000Z","modifiedAt":"2026-01-01T00:00:00.000Z"}';

/** Eight clients that each read pages of 400 instances of 1 MB, half of them slowly. */
export const attack: Attack = {
  row: 2,
  title: 'pages of 400 MB, 8 at once',

  async fill(db, tenant) {
    const type = `{"id":"HUGE","name":{"en":"Huge"},"metadata":${meta}}`;
    await sql`insert into custom_entity (tenant, id, version, document, fields)
      values (${tenant}, 'HUGE', 1, ${type}, ${type}::jsonb)`.execute(db);
    await sql`
      insert into custom_instance (tenant, type, id, version, document, fields)
      select ${tenant}, 'HUGE', id, 1, document, document::jsonb
        from (select 'h' || n as id, format('{"id":"h%s","metadata":%s,"text":"%s"}', n, ${meta}::text,
            repeat('x', ${bytes}::integer)) as document
          from generate_series(1, ${instances}::bigint) n) made`.execute(db);
  },

  async run({ tenant, call, count }, signal) {
    await repeatedly(8, signal, async (place, turn) => {
      const size = [400, 100][(place + turn) % 2];
      const response = await call(`/schema/${tenant}/custom-entities/HUGE/instances?pageSize=${size}`);
      let length = 0;
      for await (const chunk of response.body ?? []) {
        length += chunk.length;
        if (place % 2 === 0) await sleep(5);
      }
      count(response.status);
      count(`${Math.round(length / 1e6)} MB read`);
    });
  },
};
