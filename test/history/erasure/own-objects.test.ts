import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { sealPortion } from '../../../src/proof/log/seal-tenants.ts';
import { makeProofKey, openSigner } from '../../../src/proof/log/signer.ts';
import { recordChanges } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { putAgent } from '../../support/server/agents.ts';
import { annals } from '../../support/server/command.ts';
import { buildGo } from '../../support/server/go-program.ts';
import { changeOf } from '../../support/server/history.ts';
import { tablesWith } from '../../support/server/places-with.ts';
import { startTestServer } from '../../support/server/server.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const jane = 'Jane Canary';
const folder = temporaryFolder();
const keyFile = join(folder, 'key');

makeProofKey(keyFile);
const server = closeAfterAll(await startTestServer());
const environment = {
  DATABASE_URL: server.database.url,
  ANNALS_SECRET_KEY: Buffer.alloc(32, 7).toString('base64'),
  ANNALS_PROOF_KEY_FILE: keyFile,
};

interface Tenant {
  readonly tenant: string;
  readonly token: string;
}

async function newTenant(tenant: string): Promise<Tenant> {
  return { tenant, token: await server.token(tenant, { name: 'Bob' }) };
}

async function send({ token }: Tenant, method: string, path: string, body?: unknown): Promise<void> {
  const response = await server.call(path, { token, method, json: body });
  if (response.status >= 300) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
}

/**
 * Objects of every kind that name the person, changed and partly deleted by another user. Returns the number of
 * entries that name her.
 */
async function makeObjects(of: Tenant): Promise<number> {
  const { tenant, token } = of;
  const q = `actor:"${jane}"`;
  const target = { type: 'webhook', url: 'https://erp.example.com/changes', signing: 'hmac' };
  const configuration = `/configuration/${tenant}/configurations`;
  const views = `/changelog/${tenant}/views`;
  const types = `/schema/${tenant}/custom-entities`;
  await send(of, 'POST', configuration, [{ key: 'note', value: `ask ${jane}`, description: `of ${jane}` }]);
  await send(of, 'POST', `/changelog/${tenant}/subscriptions`, { id: 's1', name: `For ${jane}`, q, target });
  await send(of, 'PUT', `${views}/v1`, { name: jane, q });
  await send(of, 'PUT', `${views}/v1`, { name: 'Prices', q: 'entity:product' });
  await send(of, 'DELETE', `${views}/v1`);
  const jsonSchema = { type: 'object', properties: { owner: { enum: [jane, 'Bob'] } } };
  await send(of, 'PUT', `${types}/THING`, { id: 'THING', name: { en: `Things of ${jane}` }, jsonSchema });
  await send(of, 'PUT', `${types}/THING/instances/t1`, { name: jane, owner: jane, size: 7 });
  await send(of, 'PUT', `${types}/THING/instances/t2`, { name: 'Janet Canary', owner: 'Bob' });
  await send(of, 'PUT', `${types}/THING/instances/t3`, { name: jane });
  await send(of, 'DELETE', `${types}/THING/instances/t3`);
  await putAgent(server, { tenant, token, id: 'a1' }, { description: { en: `Made for ${jane}` } });
  await send(of, 'PUT', `/usage/${tenant}/budgets/b1`, { client: jane, period: 'day', limitTokens: 7 });
  await foldHistory(server.context.db, tenant);
  // Configuration and subscription; the view three times without its name and query of last; type; instances; agent;
  // budget.
  return 1 + 1 + 2 + 1 + 1 + 2 + 1 + 1;
}

async function seal(tenant: string): Promise<void> {
  const signer = openSigner(keyFile, 'annals.example');
  // One minute after the last checkpoint.
  const signedAt = new Date(Date.now() - 61_000);
  await server.database.pool.query('update proof_log set signed_at = $2 where tenant = $1', [tenant, signedAt]);
  try {
    while (await sealPortion(server.context.db, tenant, { signer, now: Date.now }));
  } finally {
    signer.newest.close();
  }
}

const erase = (tenant: string, ...args: string[]) =>
  annals(['erase', '--tenant', tenant, '--reason', 'request', ...args], environment);
const ofJane = ['--actor', jane];

const linesOf = (stdout: string) =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

/** Finds names of documents by whole words, not by prefixes. */
async function namesOf({ tenant, token }: Tenant, prefix: string): Promise<string[]> {
  const response = await server.call(
    `/changelog/${tenant}/names?${new URLSearchParams({ field: 'document', prefix })}`,
    { token },
  );
  const { values } = (await response.json()) as { values: { name: string }[] };
  return values.map(({ name }) => name).filter((name) => name.includes(prefix));
}

/** The tables with a row of the tenant that contains a word. */
async function tablesOf(tenant: string, word: string): Promise<string[]> {
  const { pool } = server.database;
  const found: string[] = [];
  for (const table of await tablesWith({ pool }, word)) {
    const { rowCount } = await pool.query(`select from ${table} t where t.tenant = $1 and t::text ilike $2`, [
      tenant,
      `%${word}%`,
    ]);
    if (rowCount !== 0) found.push(table);
  }
  return found;
}

test("no trace of an erased person is left in Annals' own objects and their history, and the rest is proved", async () => {
  const acme = await newTenant('acme');
  const globex = await newTenant('globex');
  const count = await makeObjects(acme);
  await makeObjects(globex);
  const line = {
    ...changeOf({ at: Date.now(), entity: 'configuration', entityId: 'theirs' }),
    paths: `{"who":{"after":"${jane}"}}`,
  };
  const shop = { way: 'recorder', by: 'shop' } as const;
  await inTransaction(server.context.db, async (transaction) => {
    await recordChanges(transaction, 'acme', [{ ...line, actor: 'Bob' }], Date.now(), shop);
  });
  await foldHistory(server.context.db, 'acme');
  await seal('acme');
  expect(await namesOf(acme, jane)).not.toEqual([]);

  const dry = linesOf((await erase('acme', ...ofJane, '--dry-run')).stdout);
  expect(dry.at(-1)).toMatchObject({ erasure: null, entries: count, left: [] });
  expect(dry).toContainEqual({
    ...{ entity: 'configuration', entityId: 'note', entries: 1 },
    erased: ['paths.description', 'paths.value'],
  });
  expect(dry).toContainEqual({
    ...{ table: 'configuration', id: ['note'], row: 'changed' },
    columns: ['description', 'value'],
  });
  expect(dry.filter(({ entityId }) => entityId === 'theirs')).toEqual([]);
  expect(await tablesOf('acme', jane)).toContain('change_entry');

  const done = await erase('acme', ...ofJane, '--yes');
  expect({ code: done.code, stderr: done.stderr }).toMatchObject({ code: 0 });
  expect(JSON.parse(done.stdout)).toMatchObject({ entries: count, left: [], rows: { configuration: 1, budget: 1 } });
  expect(await tablesOf('acme', 'jane-canary')).toEqual([]);
  // An application's own type of that name is not affected.
  const { rows } = await server.database.pool.query(
    `select entity_id from change_entry where tenant = 'acme' and paths like $1`,
    [`%${jane}%`],
  );
  expect(rows).toEqual([{ entity_id: 'theirs' }]);
  expect(await tablesOf('acme', jane)).toEqual(['change_entry']);
  expect(await namesOf(acme, jane)).toEqual([]);
  expect(await namesOf(acme, 'Janet')).toHaveLength(1);
  expect(await namesOf(globex, jane)).not.toEqual([]);

  await seal('acme');
  const check = await annals(['proof', 'check', '--tenant', 'acme'], environment);
  expect(check).toMatchObject({ code: 0, stdout: 'acme: nothing is wrong\n' });
  expect(JSON.parse((await erase('acme', ...ofJane, '--yes')).stdout)).toMatchObject({ erasure: null, entries: 0 });
  await server.database.pool.query(`delete from change_erasure where tenant = 'acme'`);
  const unlisted = await annals(['proof', 'check', '--tenant', 'acme'], environment);
  expect(unlisted.code).toBe(1);
  expect(unlisted.stdout).toMatch(/^acme: The list of erasures does not have the one of the receipt erasure@\d+\.$/m);
});

test('an id or path name with the person stops the erasure and is named, unless it is to stay', async () => {
  const of = await newTenant('ids');
  const { tenant, token } = of;
  await putAgent(server, { tenant, token, id: 'jane.canary' });
  await send(of, 'PUT', `/schema/${tenant}/custom-entities/LIST`, { id: 'LIST', name: { en: 'List' } });
  const list = `/schema/${tenant}/custom-entities/LIST/instances/l1`;
  await send(of, 'PUT', list, { tasks: { 'jane.canary': 'sweep' }, by: 'jane.canary' });
  const args = [tenant, '--actor', 'jane.canary'] as const;
  const refused = await erase(...args, '--yes');
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toContain('Nothing was erased');
  expect(refused.stderr).toContain('agent jane.canary: id');
  expect(refused.stderr).toContain('LIST l1: path tasks.jane\\.canary');
  const { rows } = await server.database.pool.query('select from change_erasure where tenant = $1', [tenant]);
  expect(rows).toEqual([]);
  const dry = await erase(...args, '--dry-run');
  const places = [
    { entity: 'agent', entityId: 'jane.canary', where: 'id' },
    { entity: 'LIST', entityId: 'l1', where: 'path tasks.jane\\.canary' },
  ];
  expect(linesOf(dry.stdout).at(-1).left).toEqual(expect.arrayContaining(places));
  const left = await erase(...args, '--yes', '--leave-ids');
  expect({ code: left.code, stderr: left.stderr }).toMatchObject({ code: 0 });
  expect(JSON.parse(left.stdout).left).toEqual(expect.arrayContaining(places));
  expect(await tablesOf(tenant, '"by": "jane.canary"')).toEqual([]);
  // A number in an id does not identify a person of another type.
  await send(of, 'PUT', `/schema/${tenant}/custom-entities/LIST/instances/4711`, { by: 'Bob' });
  const number = await erase(tenant, '--entity', 'customer', '--entity-id', '4711', '--yes');
  expect({ code: number.code, stderr: number.stderr }).toMatchObject({ code: 0 });
});

test('a certificate states what was requested and erased, is signed, and is rewritten by a later run', async () => {
  const of = await newTenant('certified');
  const { tenant } = of;
  const count = await makeObjects(of);
  const file = join(folder, 'certificate');
  const certified = (path: string) => erase(tenant, ...ofJane, '--yes', '--certificate', path);
  const nothing = async (result: { code: number | null; stderr: string }, why: string) => {
    expect(result).toMatchObject({ code: 1 });
    expect(result.stderr).toContain(why);
    expect(result.stderr).toContain('Nothing was erased');
    expect(await tablesOf(tenant, jane)).toContain('change_entry');
  };
  const { ANNALS_PROOF_KEY_FILE: _key, ...keyless } = environment;
  const args = ['erase', '--tenant', tenant, '--reason', 'request', ...ofJane, '--yes', '--certificate', file];
  await nothing(await annals(args, keyless), 'ANNALS_PROOF_KEY_FILE');
  await nothing(await certified(file), 'not sealed');
  await seal(tenant);
  writeFileSync(join(folder, 'there'), '');
  await nothing(await certified(join(folder, 'there')), 'already exists');
  await nothing(await certified(join(folder, 'nowhere', 'certificate')), 'cannot be created');
  expect((await erase(tenant, ...ofJane, '--dry-run', '--certificate', file)).code).toBe(2);

  const done = await certified(file);
  expect({ code: done.code, stderr: done.stderr }).toMatchObject({ code: 0 });
  const { erasure } = JSON.parse(done.stdout) as { erasure: string };
  const vkey = (await annals(['proof', 'vkey', '--tenant', tenant], environment)).stdout.trim();
  const verify = (path: string) => annals(['verify', path, '--key', vkey], {});
  const seen = await verify(file);
  expect(seen.code).toBe(0);
  const said = JSON.parse(seen.stdout.replace(/\n[^\n]*\n$/, ''));
  expect(said).toMatchObject({ tenant, subject: { actor: jane }, left: [], rowsOfThisRun: { configuration: 1 } });
  const [own, ...others] = said.erasures;
  expect(others).toEqual([]);
  expect(own).toMatchObject({ erasure, reason: 'request', entries: count, receipts: [expect.any(Number)] });
  expect(own.history).toContainEqual({
    ...{ entity: 'configuration', entries: 1 },
    erased: ['paths.description', 'paths.value'],
  });
  expect(said.stays.map(({ what }: { what: string }) => what).join()).toContain('backups');

  const again = join(folder, 'again');
  expect(JSON.parse((await certified(again)).stdout)).toMatchObject({ erasure: null, entries: 0 });
  const later = JSON.parse((await verify(again)).stdout.replace(/\n[^\n]*\n$/, ''));
  expect(later).toMatchObject({ erasures: [own], rowsOfThisRun: {} });

  const text = readFileSync(file, 'utf8');
  expect(text.startsWith('annals-erasure-v1\n')).toBe(true);
  writeFileSync(join(folder, 'forged'), text.replace('"request"', '"mistake"'));
  expect(await verify(join(folder, 'forged'))).toMatchObject({ code: 1, stdout: expect.stringContaining('WRONG') });
  const reader = buildGo(fileURLToPath(new URL('note-reader', import.meta.url)));
  if (reader === undefined) return;
  const read = (path: string) => spawnSync(reader, [path, vkey], { encoding: 'utf8' });
  expect(read(file)).toMatchObject({ status: 0, stdout: 'annals-erasure-v1\n' });
  expect(read(join(folder, 'forged'))).toMatchObject({ status: 1, stdout: '' });
});
