import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { Random } from '../support/oracle/random.ts';
import { trials } from '../support/oracle/trials.ts';
import { annals, startAnnals } from '../support/server/command.ts';
import { createTestDatabase, type TestDatabase } from '../support/server/database.ts';

const random = new Random();

/** So many moments to be killed at. */
const kills = trials(3);

let folder: string;
let file: string;
let database: TestDatabase;
let environment: Record<string, string>;
/** What an import leaves that was not interrupted. */
let complete: Awaited<ReturnType<typeof entriesOf>>;
// More than the 2,000 that one transaction has: what is killed has recorded a part.
const lines = 2_200;
// Every fortieth line comes twice, word for word: two changes, since there is no id to say otherwise.
const repeated = lines / 40;
// An update that changes nothing, and another one, once each hundred lines.
const unchanged = lines / 100;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'annals import '));
  file = join(folder, 'changes.ndjson.gz');
  const texts = Array.from({ length: lines }, (_, nth) => lineNumber(nth)).flat();
  await writeFile(file, gzipSync(`${texts.join('\n')}\n`));
  database = await createTestDatabase();
  environment = { DATABASE_URL: database.url, ANNALS_SECRET_KEY: randomBytes(32).toString('base64') };
  await annals(['tenant', 'create', 'whole'], environment);
  const { code, stdout } = await annals(['import', '--tenant', 'whole', file], environment);
  expect({ code, counts: JSON.parse(stdout) }).toEqual({ code: 0, counts: wholeImport });
  complete = await entriesOf(database.url, 'whole');
});

afterAll(async () => {
  await database.drop();
  await rm(folder, { recursive: true });
});

function lineNumber(nth: number): string[] {
  const at = new Date(Date.UTC(2026, 0, 1) + (nth % 3_000) * 60_000).toISOString();
  const of = `"entity":"order","entityId":"${nth}","at":"${at}","actor":"Actor ${nth % 50}"`;
  const line = `{"op":"insert",${of},"after":{"nth":${nth},"text":"${'x'.repeat(200)}"}}`;
  const none = `{"op":"update",${of},"id":"none ${nth}","before":{"a":1},"after":{"a":1}}`;
  return [line, ...(nth % 40 === 0 ? [line] : []), ...(nth % 100 === 0 ? [none] : [])];
}

const wholeImport = {
  read: lines + repeated + unchanged,
  recorded: lines + repeated,
  unchanged,
  duplicate: 0,
  expired: 0,
  rejected: 0,
};
const importAgain = { ...wholeImport, recorded: 0, duplicate: lines + repeated };

/** Every entry that a tenant has, with its totals by actor as the tallies and deltas tell them. */
async function entriesOf(url: string, tenant: string): Promise<{ entries: string[]; tallied: number }> {
  const pool = createPool(url);
  try {
    const { rows } = await pool.query<{ entry: string }>(
      `select e.at || ' ' || k.type || ' ' || e.entity_id || ' ' || a.name || ' ' || md5(e.paths) as entry
         from change_entry e
         join change_kind k on k.tenant = e.tenant and k.kind = e.kind
         join change_actor a on a.tenant = e.tenant and a.actor = e.actor
         where e.tenant = $1 order by 1`,
      [tenant],
    );
    const total = await pool.query<{ total: number }>(
      `select change_total($1, '{"{0}"}', '{"{0}"}', 0, null) as total`,
      [tenant],
    );
    return { entries: rows.map((row) => row.entry), tallied: total.rows[0]?.total ?? -1 };
  } finally {
    await pool.end();
  }
}

test('an import records every change once, and again none', async () => {
  const { entries, tallied } = complete;
  expect([entries.length, tallied]).toEqual([lines + repeated, lines + repeated]);
  const { code, stdout } = await annals(['import', '--tenant', 'whole', file], environment);
  expect({ code, counts: JSON.parse(stdout) }).toEqual({ code: 0, counts: importAgain });
  expect(await entriesOf(database.url, 'whole')).toEqual(complete);
});

test('with a mapping a masked value is in no table and no output, also where its line is rejected', async () => {
  const canary = 'canary-4111-8712';
  const [masked, mapping, faulty] = ['masked.ndjson', 'mapping.json', 'faulty.json'].map((name) => join(folder, name));
  const line = {
    op: 'insert',
    entity: 'payment',
    entityId: '1',
    at: '2026-01-01T00:00:00Z',
    id: '1',
    after: { card: { number: canary } },
  };
  const changes = [
    line,
    {
      ...line,
      op: 'update',
      id: '2',
      before: line.after,
      after: { card: { number: `${canary}0` } },
      context: { pin: canary },
    },
    { ...line, after: { card: { number: `${canary}1`, kind: 'x' } } },
    { ...line, at: 'never' },
  ];
  await writeFile(
    masked ?? '',
    `${changes.map((change) => JSON.stringify(change)).join('\n')}\n{"entity":"payment","card":"${canary}`,
  );
  await writeFile(mapping ?? '', '{"version":1,"entities":{"payment":{"mask":["card.number","pin"]}}}');
  await writeFile(faulty ?? '', '{"version":1,"entities":{"payment":{"masks":["card"]}}}');
  await annals(['tenant', 'create', 'masked'], environment);
  const start = async (of = '') =>
    await annals(['import', '--tenant', 'masked', '--mapping', of, masked ?? ''], environment);
  expect(await start(faulty)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('entities → payment → masks: is not a key that this object can have'),
  });
  const { code, stdout, stderr } = await start(mapping);
  expect({ code, counts: JSON.parse(stdout) }).toMatchObject({
    code: 1,
    counts: { read: 5, recorded: 2, rejected: 3 },
  });
  expect(stdout + stderr).not.toContain(canary);
  const { rows: tables } = await database.pool.query<{ name: string }>(
    `select c.oid::regclass::text as name from pg_class c where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace`,
  );
  expect(tables.length).toBeGreaterThan(50);
  const found = tables.map(({ name }) => `select '${name}' as name from ${name} t where t::text like '%' || $1 || '%'`);
  expect((await database.pool.query(found.join(' union all '), [canary])).rows).toEqual([]);
  const { rows } = await database.pool.query(
    `select paths from change_entry where tenant = 'masked' and paths like '%before%'`,
  );
  expect(rows).toEqual([{ paths: '{"card.number":{"before":"********","after":"********"}}' }]);
});

describe('kill -9 of an import, and then the same import again', () => {
  async function countOf(tenant: string): Promise<number> {
    const { rows } = await database.pool.query<{ count: number }>(
      'select count(*) from change_entry where tenant = $1',
      [tenant],
    );
    return rows[0]?.count ?? 0;
  }

  test(`at any of ${kills} moments leaves the entries of one import, none twice`, async () => {
    const partly: number[] = [];
    for (let kill = 0; kill < kills; kill++) {
      const tenant = `killed${kill}`;
      await createTenant(database.db, tenant);
      const first = startAnnals(['import', '--tenant', tenant, file], environment);
      // One at its very beginning, the others once they have recorded something.
      const isAtBeginning = kill % 3 === 2;
      while (!isAtBeginning && first.process.exitCode === null && (await countOf(tenant)) === 0) await sleep(2);
      await sleep(random.below(isAtBeginning ? 500 : 20));
      first.process.kill('SIGKILL');
      await first.ended;
      partly.push((await entriesOf(database.url, tenant)).entries.length);
      const second = await annals(['import', '--tenant', tenant, file], environment);
      const counts = JSON.parse(second.stdout) as typeof wholeImport;
      expect(counts).toEqual({ ...wholeImport, recorded: counts.recorded, duplicate: counts.duplicate });
      expect(counts.recorded + counts.duplicate).toBe(lines + repeated);
      expect(await entriesOf(database.url, tenant)).toEqual(complete);
    }
    console.info(`entries that the killed imports had recorded: ${partly.join(', ')}`);
  });

  test('two imports of one file at the same time record it once', async () => {
    await annals(['tenant', 'create', 'twice'], environment);
    const args = ['import', '--tenant', 'twice', file];
    const both = await Promise.all([annals(args, environment), annals(args, environment)]);
    const counts = both.map(({ stdout }) => JSON.parse(stdout) as typeof wholeImport);
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect(counts.reduce((sum, one) => sum + one.recorded, 0)).toBe(lines + repeated);
    expect(counts.reduce((sum, one) => sum + one.duplicate, 0)).toBe(lines + repeated);
    expect((await entriesOf(database.url, 'twice')).tallied).toBe(lines + repeated);
  });
});
