// Exports a million entries through a service of its own, and writes how long that takes, as a ratio to COPY of the same
// rows, and what memory the service needs meanwhile. Run it with: node bench/export/run.ts [--entries 1000000]

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { createClient } from '../../src/access/oauth/clients.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { tokenOf } from '../access-token.ts';

const tenant = 'bench';
const { values } = parseArgs({ options: { entries: { type: 'string', default: '1000000' } } });
const entries = Number(values.entries);

const dataDir = await mkdtemp(join(tmpdir(), 'annals-export-'));
const database = process.env.DATABASE_URL
  ? { url: process.env.DATABASE_URL, release: async () => {} }
  : await openEmbeddedDatabase({ dataDir, log: (line: string) => process.stderr.write(`${line}\n`) });
const pool = createPool(database.url);
try {
  await migrate(pool);
  const db = createDatabase(pool);
  await createTenant(db, tenant);
  await fill(pool);
  const scope = 'ai.agent_manage changelog.changelog_read';
  const client = await createClient(db, { tenant, scope });
  const service = await startService(database.url);
  const token = await tokenOf(service.baseUrl, client);
  const idle = await service.memory();
  const call = (path: string, init: RequestInit = {}) =>
    fetch(`${service.baseUrl}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    });
  process.stdout.write(`${entries} entries\n`);
  process.stdout.write(`memory of the idle service: ${mebibytes(idle)}\n`);
  for (const format of ['NDJSON', 'CSV']) {
    // COPY runs before and after the export, so that other work of the machine slows down both alike.
    const before = { shown: await copy(true), bare: await copy(false) };
    const samples: number[] = [];
    const over = new AbortController();
    const sampling = sample(service.memory, samples, over.signal);
    const begun = performance.now();
    const made = await call(`/ai-service/${tenant}/jobs`, {
      method: 'POST',
      body: JSON.stringify({ type: 'EXPORT', q: '', format }),
    });
    const { jobId } = (await made.json()) as { jobId: string };
    const job = await end(jobId);
    const seconds = (performance.now() - begun) / 1_000;
    const exporting = samples.splice(0);
    const fetching = performance.now();
    let bytes = 0;
    const content = await call(`/ai-service/${tenant}/jobs/${jobId}/content`);
    for await (const piece of content.body ?? []) bytes += piece.length;
    const fetched = (performance.now() - fetching) / 1_000;
    over.abort();
    await sampling;
    const shown = (before.shown + (await copy(true))) / 2;
    const bare = (before.bare + (await copy(false))) / 2;
    const stored = await pool.query<{ bytes: number }>(
      'select sum(length(content))::bigint as bytes from job_chunk where job = $1',
      [jobId],
    );
    process.stdout.write(
      `${format}: ${job.status}, ${job.metadata.entries} entries, ${mebibytes(bytes)} (stored as ${mebibytes(stored.rows[0]?.bytes ?? 0)}); ` +
        `${seconds.toFixed(2)} s, ${(entries / seconds / 1_000).toFixed(0)} thousand a second, ` +
        `${(shown / seconds).toFixed(2)} of COPY of the same rows (${shown.toFixed(2)} s), ${(bare / seconds).toFixed(2)} of the bare table's (${bare.toFixed(2)} s)\n` +
        `  memory while exporting: ${spread(exporting)}; while fetching (${fetched.toFixed(2)} s): ${spread(samples)}\n`,
    );

    async function end(id: string): Promise<{ status: string; metadata: { entries: number } }> {
      for (;;) {
        const seen = (await (await call(`/ai-service/${tenant}/jobs/${id}`)).json()) as {
          status: string;
          metadata: { entries: number };
        };
        if (seen.status !== 'in_progress') return seen;
        await sleep(50);
      }
    }
  }
  await service.end();
} finally {
  await pool.end();
  await database.release();
  await rm(dataDir, { recursive: true, force: true });
}

/** Entries of the last 20 days, some 400 bytes each: 8 entity types, 2,000 actors, one in five with a related item. */
async function fill(target: pg.Pool): Promise<void> {
  const { rows } = await target.query<{ count: number }>(
    'select count(*) as count from change_entry where tenant = $1',
    [tenant],
  );
  if ((rows[0]?.count ?? 0) > 0) return;
  await target.query(
    `insert into change_kind (tenant, lookup, entity, type, related_entities)
       select $1, gen_random_uuid(), 'entity' || k / 2, (array['update', 'create'])[k % 2 + 1], '{}' from generate_series(0, 15) k`,
    [tenant],
  );
  await target.query(
    `insert into change_actor (tenant, lookup, name)
       select $1, gen_random_uuid(), 'Actor Number ' || a from generate_series(1, 2000) a`,
    [tenant],
  );
  await target.query(
    `insert into change_entry (tenant, at, kind, actor, document, identity, entity_id, name, related, paths)
       select $1, (extract(epoch from now()) * 1000)::bigint - (i * (1728000000::numeric / $2))::bigint,
              (select min(kind) from change_kind where tenant = $1) + i % 16,
              (select min(actor) from change_actor where tenant = $1) + (i * 7919) % 2000,
              change_document('id-' || i % 50000), gen_random_uuid(), 'id-' || i % 50000, 'Document ' || i % 50000,
              case when i % 5 = 0 then '[{"entity":"group","entityId":"group-' || i % 300 || '"}]' end,
              '{"price.amount":{"before":' || i % 1000 || '.90,"after":' || i % 997 || '.95},"description.en":{"before":"'
                || md5(i::text) || ' ' || md5((i + 1)::text) || '","after":"' || md5((i + 2)::text) || ' ' || md5((i + 3)::text) || '"}}'
         from generate_series(1, $2::bigint) i`,
    [tenant, entries],
  );
  await target.query('vacuum analyze');
}

/** Seconds that the server takes to hand out the rows to a client that throws them away. */
async function copy(shown: boolean): Promise<number> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query('set enable_sort = off; set jit = off');
  const begun = performance.now();
  await client.query(
    shown
      ? `copy (select e.at, k.type, k.entity, e.entity_id, e.name, e.schema_version, a.name, e.related, e.paths
           from change_entry e join change_kind k on k.tenant = e.tenant and k.kind = e.kind
           join change_actor a on a.tenant = e.tenant and a.actor = e.actor
           where e.tenant = '${tenant}' order by e.at desc, e.sequence desc) to stdout`
      : `copy (select * from change_entry where tenant = '${tenant}') to stdout`,
  );
  const seconds = (performance.now() - begun) / 1_000;
  await client.end();
  return seconds;
}

async function startService(url: string) {
  const served = spawn(process.execPath, [join(import.meta.dirname, '../../bin/annals.js'), 'serve'], {
    env: {
      PATH: process.env.PATH,
      PORT: '0',
      LOG_LEVEL: 'warn',
      DATABASE_URL: url,
      ANNALS_SECRET_KEY: Buffer.alloc(32, 7).toString('base64'),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let baseUrl = '';
  for await (const line of createInterface({ input: served.stdout })) {
    baseUrl = line;
    break;
  }
  return {
    baseUrl,
    /** Bytes of the service's largest process: the one that the launcher started. */
    async memory() {
      const children = await readFile(`/proc/${served.pid}/task/${served.pid}/children`, 'utf8').catch(() => '');
      const sizes = await Promise.all(
        [String(served.pid), ...children.trim().split(' ').filter(Boolean)].map(async (pid) => {
          const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
          return 1024 * Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0);
        }),
      );
      return Math.max(...sizes);
    },
    async end() {
      served.kill('SIGTERM');
      await once(served, 'exit');
    },
  };
}

async function sample(memory: () => Promise<number>, samples: number[], over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    samples.push(await memory());
    await sleep(100);
  }
}

function spread(samples: readonly number[]): string {
  const at = (share: number) => mebibytes(samples[Math.floor(share * (samples.length - 1))] ?? 0);
  return `${at(0)} at its begin, ${at(0.25)}, ${at(0.5)}, ${at(0.75)}, ${at(1)} at its end, at most ${mebibytes(Math.max(...samples))}`;
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(0)} MiB`;
}
