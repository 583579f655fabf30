import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { createKey } from '../../../src/access/keys/key-store.ts';
import { forgetAll } from '../../../src/core/forgetting.ts';
import { createSealer } from '../../../src/core/sealing.ts';
import { type EraseOptions, eraseSubject, findSubject } from '../../../src/history/erasure/erase.ts';
import { eraseAgain, linesOfErasures } from '../../../src/history/erasure/erasures-file.ts';
import type { Subject } from '../../../src/history/erasure/subject.ts';
import { createReadBundle } from '../../../src/history/feed/bundle-lines.ts';
import { DictionaryCache } from '../../../src/history/search/names/dictionary-cache.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { findMisfiled } from '../../../src/history/upkeep/misfiled.ts';
import { readLog } from '../../../src/proof/log/log-store.ts';
import { sealPortion } from '../../../src/proof/log/seal-tenants.ts';
import { makeProofKey, openSigner } from '../../../src/proof/log/signer.ts';
import { checkHistory } from '../../../src/proof/verify/check-history.ts';
import type { Verdict } from '../../../src/proof/verify/verdicts.ts';
import { verifyBundle } from '../../../src/proof/verify/verify-bundle.ts';
import { RegexMatcherPool } from '../../../src/query/regex-pool.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { callStart, endedCall } from '../../support/server/calls.ts';
import { annals } from '../../support/server/command.ts';
import { changeOf } from '../../support/server/history.ts';
import { startTestServer } from '../../support/server/server.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const now = Date.now();
const secret = Buffer.alloc(32, 7);
const sealer = createSealer([secret]);
const server = closeAfterAll(await startTestServer());
const { db } = server.context;
const { pool } = server.database;
const keyFile = join(temporaryFolder(), 'key');
makeProofKey(keyFile);
const signer = openSigner(keyFile, 'annals.example');
const regexes = new RegexMatcherPool();
const readBundle = createReadBundle({ pool, db, regexes, now: () => now, dictionaries: new DictionaryCache(pool) });
const erased = expect.stringMatching(/^erased-[0-9a-f]{16}$/);

let tenants = 0;
let tenant = '';
let token = '';

beforeEach(async () => {
  tenants += 1;
  tenant = `people${tenants}`;
  token = await server.token(tenant);
});

const options = (subject: Subject, more: Partial<EraseOptions> = {}): EraseOptions => ({
  ...{ db, sealer, tenant, subject, reason: 'request', now: () => now, rest: async () => {} },
  ...more,
});
const byId = (actorId: string, context?: string[]): Subject => ({ actorId, context, paths: [] });

async function record(people: readonly Partial<Change>[]): Promise<Change[]> {
  const changes = people.map((who, i) =>
    changeOf({ at: now - 1_000 + i, entity: 'order', entityId: `o-${i}`, ...who }),
  );
  await createRecorder(db, tenant, () => now, sealer)(changes);
  await foldHistory(db, tenant);
  return changes;
}

interface Item {
  entityId: string;
  actor: string;
  actorId?: string;
  onBehalfOf?: { name?: string; id?: string };
  context?: unknown;
  erased?: string[];
}

async function shown(q = 'entity:order'): Promise<Item[]> {
  // What every process does within five seconds.
  forgetAll();
  const path = `/changelog/${tenant}/changelogs?${new URLSearchParams({ q, context: 'true', sort: 'entityId:ASC' })}`;
  const response = await server.call(path, { token });
  expect(response.status).toBe(200);
  const { items } = (await response.json()) as { items: Item[] };
  const known = ['entityId', 'actor', 'actorId', 'onBehalfOf', 'context', 'erased'];
  return items
    .map(
      (item) =>
        Object.fromEntries(Object.entries(item).filter(([member]) => known.includes(member))) as unknown as Item,
    )
    .sort((a, b) => (a.entityId < b.entityId ? -1 : 1));
}

/** All texts in the tables of the tenant. */
async function dump(): Promise<string> {
  const { rows } = await pool.query<{ name: string }>(
    `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant'
       where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace`,
  );
  const texts: string[] = [];
  for (const { name } of rows) {
    const found = await pool.query(`select t::text as row from ${name} t where tenant = $1`, [tenant]);
    texts.push(...found.rows.map(({ row }: { row: string }) => `${name} ${row}`));
  }
  return texts.join('\n');
}

async function seal(): Promise<void> {
  await foldHistory(db, tenant);
  do {
    await pool.query('update proof_log set signed_at = null where tenant = $1', [tenant]);
  } while (await sealPortion(db, tenant, { signer, now: () => now }));
}

async function check() {
  const log = await readLog(db, tenant);
  const newest = signer.newest.newest(log?.origin ?? '')?.note;
  const verdicts: Verdict[] = [];
  const key = signer.keyOf(log?.origin ?? '');
  const { isRight, findings } = await checkHistory(
    tenant,
    { db, readBundle, findMisfiled, key, newest },
    (verdict) => void verdicts.push(verdict),
  );
  return { isRight, findings: findings.filter(({ isWrong }) => isWrong).map(({ text }) => text), verdicts };
}

const ofRequest = '{"ip":"203.0.113.7"}';
const jane = { actor: 'Jane Doe', actorId: 'u-17', context: ofRequest };

describe('a person by an id', () => {
  test('of two people of one name, the other stays, and so do entries by the name alone', async () => {
    const other = { actor: 'Jane Doe', actorId: 'u-18', context: ofRequest };
    const unknown = { actor: 'Jane Doe', context: ofRequest };
    await record([jane, other, unknown, jane, { actor: 'Bob', context: ofRequest }]);
    const before = await shown();
    const found: unknown[] = [];
    const counted = await findSubject(options(byId('u-17')), (one) => found.push(one));
    expect(counted).toEqual({ erasure: undefined, entries: 2, rows: {}, left: [], sameName: 2 });
    expect(found).toEqual(
      ['o-0', 'o-3'].map((entityId) => ({
        ...{ entity: 'order', entityId, entries: 1 },
        erased: ['actor', 'actorId', 'context'],
      })),
    );
    expect(await shown()).toEqual(before);
    expect(await eraseSubject(options(byId('u-17')))).toMatchObject({ entries: 2, sameName: 2 });
    const after = await shown();
    const gone = { actor: erased, actorId: erased, erased: ['actor', 'actorId', 'context'] };
    expect(after).toEqual([
      { entityId: 'o-0', ...gone },
      before[1],
      before[2],
      { entityId: 'o-3', ...gone },
      before[4],
    ]);
    expect(after[0]?.actorId).toBe(after[3]?.actorId);
    expect(await shown(`actorId:${after[0]?.actorId}`)).toHaveLength(2);
    expect(await shown('actor:"Jane Doe"')).toHaveLength(2);
    expect(await shown('actorId:u-17')).toEqual([]);
    expect(await dump()).not.toContain('u-17');
    expect(await eraseSubject(options(byId('u-17')))).toMatchObject({ erasure: undefined, entries: 0 });
  });

  test('a person who is an end user is erased from keys, calls, sums, budgets and their alerts', async () => {
    await record([jane]);
    const path = `/usage/${tenant}/budgets/b`;
    const json = { user: 'u-17', period: 'lifetime', limitTokens: 100 };
    expect((await server.call(path, { token, method: 'PUT', json })).status).toBe(201);
    await createKey(db, { tenant, scopes: ['ai.completion_manage'], user: 'u-17' });
    const { quota } = server.context.completions;
    const call = callStart({ token: 'own', user: 'u-17', isUserFixed: true });
    await quota.record(tenant, call, endedCall({ inputTokens: 0, outputTokens: 60 }));
    await server.context.budgetAlerts.look(tenant);
    await pool.query(
      "insert into budget_alert (tenant, budget, first, threshold, name) values ($1, 'b', 0, 50, 'u-17')",
      [tenant],
    );
    const before = await dump();
    for (const table of ['access_key', 'budget', 'budget_alert', 'call_record', 'call_sum'])
      expect(before).toMatch(new RegExp(`^${table} .*u-17`, 'm'));
    expect((await eraseSubject(options(byId('u-17')))).rows).toMatchObject({ call_sum: 2, budget: 1, access_key: 1 });
    expect(await dump()).not.toContain('u-17');
    const budget = (await (await server.call(path, { token })).json()) as { user: string; use: object };
    expect(budget).toMatchObject({ user: erased, use: { spentTokens: 60 } });
  });

  test('a renamed person loses both names, and stays one', async () => {
    await record([jane, { ...jane, actor: 'Jane Smith' }, { actor: 'Bob', actorId: 'u-1' }]);
    expect(await eraseSubject(options(byId('u-17')))).toMatchObject({ entries: 2, sameName: 0 });
    const [first, second, bob] = await shown();
    expect(first).toMatchObject({ actor: erased, actorId: erased });
    expect(second).toMatchObject({ actor: first?.actor, actorId: first?.actorId });
    expect(bob).toMatchObject({ actor: 'Bob', actorId: 'u-1' });
    expect(await dump()).not.toMatch(/u-17|Jane/);
    const people = await (await server.call(`/changelog/${tenant}/actors`, { token })).json();
    expect(people).toMatchObject([
      { actorId: first?.actorId, names: [{ name: first?.actor }], changes: 2 },
      { actorId: 'u-1', names: [{ name: 'Bob' }], changes: 1 },
    ]);
    const { rows } = await pool.query(
      `select count(distinct lookup)::integer as lookups from change_actor where tenant = $1`,
      [tenant],
    );
    expect(rows).toEqual([{ lookups: 3 }]);
  });

  test('a person on whose behalf somebody acted is erased there, and the actor stays', async () => {
    const support = { actor: 'Support', actorId: 's-1', context: ofRequest };
    await record([
      { ...support, onBehalfOf: { name: 'Jane Doe', id: 'u-17' } },
      { ...support, onBehalfOf: { id: 'u-17' } },
      { ...support, onBehalfOf: { name: 'Jane Doe' } },
      { ...jane, onBehalfOf: { name: 'Jane Doe', id: 'u-17' } },
      { ...jane, onBehalfOf: { name: 'Acme Ltd', id: 'c-1' } },
    ]);
    expect(await eraseSubject(options(byId('u-17')))).toMatchObject({ entries: 4, sameName: 1 });
    const bySupport = { actor: 'Support', actorId: 's-1' };
    const byJane = { actor: erased, actorId: erased };
    expect(await shown()).toEqual([
      { entityId: 'o-0', ...bySupport, onBehalfOf: { name: erased, id: erased }, erased: ['context', 'onBehalfOf'] },
      { entityId: 'o-1', ...bySupport, onBehalfOf: { id: erased }, erased: ['context', 'onBehalfOf'] },
      { entityId: 'o-2', ...bySupport, onBehalfOf: { name: 'Jane Doe' }, context: { ip: '203.0.113.7' } },
      { entityId: 'o-3', ...byJane, onBehalfOf: { name: erased, id: erased }, erased: ['actor', 'actorId', 'context', 'onBehalfOf'] },
      { entityId: 'o-4', ...byJane, onBehalfOf: { name: 'Acme Ltd', id: 'c-1' }, erased: ['actor', 'actorId', 'context'] },
    ]); // biome-ignore format: a line for each
    expect(await dump()).not.toContain('u-17');
  });

  test('other contexts go as a whole where a named member equals the id', async () => {
    await record([
      { actor: 'Bob', context: '{"user_id":"17","ip":"1","other":"17"}' },
      { actor: 'Bob', context: '{"user_id":17,"ip":"1"}' },
      { actor: 'Bob', context: '{"user_id":"171","owner":"\\u0031\\u0037"}' },
      { actor: 'Bob', context: '{"user":{"user_id":"17"}}' },
      { actor: 'Jane', actorId: '17', context: '{"user_id":"17"}' },
    ]);
    const subject = byId('17', ['owner', 'user_id']);
    const found: { entityId?: string; erased?: string[] }[] = [];
    const { entries } = await findSubject(options(subject), (one) => found.push(one as { entityId?: string }));
    expect(entries).toBe(4);
    expect(found.find(({ entityId }) => entityId === 'o-1')?.erased).toEqual(['context']);
    expect(await eraseSubject(options(subject))).toMatchObject({ entries: 4 });
    const contexts = (await shown()).map(({ context: one, erased: gone }) => [one, gone]);
    expect(contexts).toEqual([
      [undefined, ['context']],
      [undefined, ['context']],
      [undefined, ['context']],
      [{ user: { user_id: '17' } }, undefined],
      [undefined, ['actor', 'actorId', 'context']],
    ]);
    expect(await eraseSubject(options(subject))).toMatchObject({ erasure: undefined });
  });

  test('a name that somebody else has stays in queries, and one that nobody else has goes', async () => {
    await record([jane, { ...jane, actor: 'Jane Unique' }, { actor: 'Jane Doe', actorId: 'u-18' }]);
    const q = 'actor:("Jane Doe", "Jane Unique") actorId:u-17';
    const put = await server.call(`/changelog/${tenant}/views/v1`, { token, method: 'PUT', json: { name: 'All', q } });
    expect(put.status).toBeLessThan(300);
    await eraseSubject(options(byId('u-17')));
    const view = (await (await server.call(`/changelog/${tenant}/views/v1`, { token })).json()) as { q: string };
    expect(view.q).toMatch(/^actor:\("Jane Doe", "erased-[0-9a-f]{16}"\) actorId:erased-[0-9a-f]{16}$/);
    expect(await dump()).not.toMatch(/u-17|Jane Unique/);
  });

  test('a person with more than a hundred names loses all, and entries by any of them without the id are counted', async () => {
    const names = Array.from({ length: 230 }, (_none, i) => `Jane ${String(i).padStart(3, '0')} Doe`);
    await record([
      ...names.map((actor) => ({ actor, actorId: 'u-17' })),
      ...names.map((actor) => ({ actor, actorId: 'u-18' })).slice(0, 115),
      { actor: 'Jane 114 Doe' },
    ]);
    const q = `actor:(${names
      .slice(110, 140)
      .map((name) => `"${name}"`)
      .join(', ')})`;
    const put = await server.call(`/changelog/${tenant}/views/v1`, { token, method: 'PUT', json: { name: 'All', q } });
    expect(put.status).toBeLessThan(300);
    expect(await findSubject(options(byId('u-17')), () => {})).toMatchObject({ sameName: 116 });
    expect(await eraseSubject(options(byId('u-17')))).toMatchObject({ sameName: 116 });
    const view = (await (await server.call(`/changelog/${tenant}/views/v1`, { token })).json()) as { q: string };
    expect(view.q.match(/Jane \d+ Doe/g)).toEqual(names.slice(110, 115));
    const left = (await dump()).match(/Jane \d+ Doe/g);
    expect(new Set(left)).toEqual(new Set(names.slice(0, 115)));
  });

  test('entries with the id or a name in their correlation id are counted, and keep it', async () => {
    const id = '0190c9a4-7d5e-7c3a-9b1f-3f2a1c0d9e8f';
    const of = (correlationId: string) => ({ actor: 'Bob', actorId: 'u-1', correlationId });
    await record([
      { ...jane, actorId: id, correlationId: `login:${id}` },
      of(id),
      of('import of Jane Doe'),
      of(`${id}0`),
      of('other'),
      { actor: 'Bob' },
    ]);
    expect(await findSubject(options(byId(id)), () => {})).toMatchObject({ correlated: 3 });
    expect(await eraseSubject(options(byId(id)))).toMatchObject({ entries: 1, correlated: 3 });
    expect(await shown(`correlationId:"${id}"`)).toMatchObject([{ entityId: 'o-1' }]);
    const byName = await findSubject(options({ actor: 'Jane Doe', paths: [] }), () => {});
    expect(byName).toMatchObject({ entries: 0, correlated: 1 });
    expect(await findSubject(options(byId('u-2')), () => {})).not.toHaveProperty('correlated');
  });

  test('by the name, all ids beside it are listed', async () => {
    await record(Array.from({ length: 130 }, (_none, i) => ({ actor: 'Jane Doe', actorId: `u-${i}` })));
    const { ids } = await findSubject(options({ actor: 'Jane Doe', paths: [] }), () => {});
    expect(ids).toHaveLength(130);
  });

  test.each([
    ['create', 'Support'],
    ['u-17', 'range'],
  ])('words that are the id %s or the name %s stay where they are no person, and are listed', async (id, name) => {
    await record([
      { actor: name, actorId: id, entityId: 'o-0' },
      { actor: 'Bob', actorId: 'u-1', entityId: name },
    ]);
    const put = async (of: string, json: { name: string; q: string }) => {
      const answer = await server.call(`/changelog/${tenant}/views/${of}`, { token, method: 'PUT', json });
      expect(answer.status, await answer.text()).toBeLessThan(300);
    };
    const others = { name, q: `entityId:"${name}" type:create path:${name} related.entityId:"${id}" entity:${id}` };
    await put('v1', others);
    await put('v2', { name: 'Mine', q: `actor:("${name}", Bob) actorId:${id} type:create` });
    await foldHistory(db, tenant);
    const left = [
      { entity: 'saved_view', entityId: 'v1', where: 'document' },
      { entity: 'annals-view', entityId: 'v1', where: 'value of q' },
    ];
    const counted = await findSubject(options(byId(id)), () => {});
    expect(counted).toMatchObject({ left: expect.arrayContaining(left) });
    const done = await eraseSubject(options(byId(id)));
    expect(done).toMatchObject({ left: expect.arrayContaining(left) });
    const view = async (of: string) =>
      (await (await server.call(`/changelog/${tenant}/views/${of}`, { token })).json()) as { name: string; q: string };
    expect(await view('v1')).toMatchObject(others);
    expect((await view('v2')).q).toMatch(
      /^actor:\("erased-[0-9a-f]{16}", Bob\) actorId:erased-[0-9a-f]{16} type:create$/,
    );
    for (const of of ['v1', 'v2']) {
      const q = new URLSearchParams({ q: (await view(of)).q });
      expect((await server.call(`/changelog/${tenant}/changelogs?${q}`, { token })).status).toBe(200);
    }
    expect((await shown('entity:order')).map(({ entityId }) => entityId)).toEqual(['o-0', name].sort());
    expect(await eraseSubject(options(byId(id)))).toMatchObject({ erasure: undefined, rows: {} });
  });

  test('an id that is a number is replaced in texts only where they say that it is such an id', async () => {
    await record([{ actor: 'Jane Unique', actorId: '1717' }]);
    const put = async (path: string, json: unknown, method = 'PUT') => {
      const answer = await server.call(path, { token, method, json });
      expect(answer.status, await answer.text()).toBeLessThan(300);
    };
    const queries: [q: string, after: RegExp][] = [
      ['actorId:1717 related.entityId:1717', /^actorId:erased-[0-9a-f]{16} related.entityId:1717$/],
      ['onBehalfOfId:(18, 1717, 17170)', /^onBehalfOfId:\(18, erased-[0-9a-f]{16}, 17170\)$/],
      [
        'context.user_id:"1717" entity:order entityId:1717',
        /^context\.user_id:"erased-[0-9a-f]{16}" entity:order entityId:1717$/,
      ],
    ];
    for (const [place, [q]] of queries.entries())
      await put(`/changelog/${tenant}/views/v${place}`, { name: '1717', q });
    await put(`/configuration/${tenant}/configurations`, [{ key: 'limit', value: '1717' }], 'POST');
    await foldHistory(db, tenant);
    await eraseSubject(options(byId('1717')));
    for (const [place, [, after]] of queries.entries()) {
      const view = await (await server.call(`/changelog/${tenant}/views/v${place}`, { token })).json();
      expect(view).toMatchObject({ name: '1717', q: expect.stringMatching(after) });
      const [entry] = (await shown(`entity:annals-view entityId:v${place}`)) as unknown as { paths: object }[];
      expect(JSON.stringify(entry)).not.toContain('actorId:1717');
    }
    const { rows } = await pool.query(`select t::text as row from configuration t where tenant = $1`, [tenant]);
    expect(JSON.stringify(rows)).toContain('1717');
    expect(await dump()).not.toMatch(/actorId:1717|onBehalfOfId:\(18, 1717|user_id:\\*"1717/);
  });

  test('an erasure that was interrupted ends with the same text, and a repeat of a change is a duplicate', async () => {
    const people = Array.from({ length: 450 }, (_none, i) => ({
      ...jane,
      actor: i % 2 === 0 ? 'Jane Doe' : 'Jane Smith',
    }));
    const changes = await record(people);
    let portions = 0;
    const rest = async () => {
      portions += 1;
      throw new Error('killed');
    };
    await expect(eraseSubject(options(byId('u-17'), { rest }))).rejects.toThrow('killed');
    expect(portions).toBe(1);
    expect(await eraseSubject(options(byId('u-17')))).toMatchObject({ entries: 450 });
    const { rows } = await pool.query(
      `select a.name, a.actor_id, count(*)::integer as entries from change_actor a
         join change_entry e on e.tenant = a.tenant and e.actor = a.actor where a.tenant = $1 group by 1, 2`,
      [tenant],
    );
    expect(rows).toEqual([{ name: erased, actor_id: rows[0]?.name, entries: 450 }]);
    expect(await dump()).not.toMatch(/u-17|Jane/);
    const again = await createRecorder(db, tenant, () => now, sealer)(changes);
    expect(new Set(again)).toEqual(new Set(['duplicate']));
  });

  test('a restored history is erased from again, by the list of erasures', async () => {
    await record([jane, { ...jane, actor: 'Jane Smith' }, { actor: 'Jane Doe', actorId: 'u-18' }]);
    await eraseSubject(options(byId('u-17')));
    const lines: string[] = [];
    for await (const line of linesOfErasures(db, tenant)) lines.push(line);
    expect(lines.join('')).not.toMatch(/u-17|Jane/);
    const replaced = (await shown())[0]?.actorId;
    // As a backup of before has it.
    await pool.query(
      `update change_actor set name = 'Jane', actor_id = 'u-17' where tenant = $1 and actor_id like 'erased-%'`,
      [tenant],
    );
    await pool.query(`update change_entry set erased = null, context = $2 where tenant = $1 and erased is not null`, [
      tenant,
      ofRequest,
    ]);
    await pool.query(`delete from change_erasure where tenant = $1`, [tenant]);
    const { erased: done, failed } = await eraseAgain(lines.join('\n'), { db, sealer, now: () => now });
    expect({ done: done.map(({ entries }) => entries), failed }).toEqual({ done: [2], failed: [] });
    expect((await shown()).map(({ actorId }) => actorId)).toEqual([replaced, replaced, 'u-18']);
  });

  test('annals erase --actor-id erases, and refuses options that do not belong to it', async () => {
    await record([jane, { actor: 'Bob', context: '{"user_id":"u-17"}' }]);
    const environment = { DATABASE_URL: server.database.url, ANNALS_SECRET_KEY: secret.toString('base64') };
    const run = async (...args: string[]) =>
      await annals(['erase', '--tenant', tenant, '--reason', 'law', ...args], environment);
    for (const wrong of [
      ['--actor-id', 'u-17', '--actor', 'Jane', '--yes'],
      ['--actor-id', '', '--yes'],
      ['--actor', 'Jane', '--context', 'user_id', '--yes'],
      ['--actor-id', 'u-17', '--context', 'user_id,', '--yes'],
    ]) {
      expect(await run(...wrong)).toMatchObject({ code: 2, stdout: '' });
    }
    const { code, stdout } = await run('--actor-id', 'u-17', '--context', 'user_id', '--yes');
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 0, entries: 2, sameName: 0 });
    expect(await dump()).not.toContain('u-17');
  });
});

test('a certificate says whom it is for, what was erased and which entries by the name stay', async () => {
  await record([jane, { actor: 'Jane Doe', correlationId: 'login u-17' }]);
  await seal();
  const file = join(temporaryFolder(), 'certificate');
  const environment = {
    ...{ DATABASE_URL: server.database.url, ANNALS_SECRET_KEY: secret.toString('base64') },
    ANNALS_PROOF_KEY_FILE: keyFile,
  };
  const of = ['--tenant', tenant, '--actor-id', 'u-17', '--reason', 'law', '--yes', '--certificate', file];
  expect(await annals(['erase', ...of], environment)).toMatchObject({ code: 0 });
  const vkey = (await readLog(db, tenant))?.vkey ?? '';
  expect(await annals(['verify', file, '--key', vkey], {})).toMatchObject({ code: 0 });
  const text = readFileSync(file, 'utf8');
  const body = JSON.parse(text.slice(text.indexOf('{'), text.indexOf('\n\n')));
  expect(body).toMatchObject({
    subject: { actorId: 'u-17', paths: [] },
    erasures: [{ entries: 1, history: [{ entity: 'order', entries: 1, erased: ['actor', 'actorId', 'context'] }] }],
  });
  expect(JSON.stringify(body.stays)).toContain('1 entries by the same name without the id, or with another');
  expect(JSON.stringify(body.stays)).toContain('the correlation ids of 1 entries, with the id or a name in them');
});

describe('a person by the name', () => {
  test('the name goes wherever it stands, the ids beside it stay and are listed', async () => {
    await record([
      jane,
      { actor: 'Jane Doe', actorId: 'u-18' },
      { actor: 'Jane Doe' },
      { actor: 'Support', onBehalfOf: { name: 'Jane Doe', id: 'u-19' } },
      { actor: 'Bob', actorId: 'u-1' },
    ]);
    const subject = { actor: 'Jane Doe', paths: [] };
    const ids = ['u-17', 'u-18', 'u-19'];
    expect(await findSubject(options(subject), () => {})).toMatchObject({ entries: 4, ids });
    expect(await eraseSubject(options(subject))).toMatchObject({ entries: 4, ids });
    expect(await shown()).toEqual([
      { entityId: 'o-0', actor: erased, actorId: 'u-17', erased: ['actor', 'context'] },
      { entityId: 'o-1', actor: erased, actorId: 'u-18', erased: ['actor'] },
      { entityId: 'o-2', actor: erased, erased: ['actor'] },
      { entityId: 'o-3', actor: 'Support', onBehalfOf: { name: erased, id: 'u-19' }, erased: ['onBehalfOf.name'] },
      { entityId: 'o-4', actor: 'Bob', actorId: 'u-1' },
    ]);
    expect(await dump()).not.toContain('Jane');
    // The ids are erased by themselves, each with what the name became.
    for (const id of ids) expect(await eraseSubject(options(byId(id)))).toMatchObject({ entries: 1 });
    expect((await shown()).map(({ erased: gone }) => gone)).toEqual([
      ['actor', 'actorId', 'context'],
      ['actor', 'actorId'],
      ['actor'],
      ['onBehalfOf'],
      undefined,
    ]);
    expect(await dump()).not.toMatch(/Jane|u-17|u-18|u-19/);
  });
});

describe('the proof of what is left', () => {
  const people = [
    jane,
    { ...jane, actor: 'Jane Smith', correlationId: 'req-1' },
    { actor: 'Support', onBehalfOf: { name: 'Jane Doe', id: 'u-17' } },
    { actor: 'Jane Doe', context: ofRequest },
    { actor: 'Bob', context: '{"user_id":"u-17","ip":"1"}' },
  ];
  const hidden = [['actor', 'actorId'], ['actor', 'actorId'], ['onBehalfOfName', 'onBehalfOfId'], undefined, undefined];

  test('entries that were sealed before still verify, against the checkpoint of before', async () => {
    await record(people);
    await seal();
    const kept = (await readLog(db, tenant))?.checkpoint ?? '';
    // Sealed between the portions and the names: with the names.
    await eraseSubject(options(byId('u-17', ['user_id']), { rest: seal }));
    await seal();
    const { isRight, findings, verdicts } = await check();
    expect({ isRight, findings }).toEqual({ isRight: true, findings: [] });
    const fieldsAt = (position: number) => verdicts.find(({ from, to }) => from <= position && position <= to)?.fields;
    expect(people.map((_person, place) => fieldsAt(place + 1))).toEqual(hidden);
    const keys = [(await readLog(db, tenant))?.vkey ?? ''];
    const verified = async (accept: readonly string[]) =>
      await verifyBundle(
        () => readBundle(tenant, { withContext: true }),
        { keys, oldCheckpoint: kept, accept: new Set(accept) },
        () => {},
      );
    const { receipts } = await verified([]);
    const ended = await verified(receipts.map(({ receipt }) => receipt.name));
    expect(ended.isRight).toBe(true);
  });

  test('an entry that is sealed after its erasure is verified, also by an erasure that resumes', async () => {
    await record(people);
    const rest = async () => {
      throw new Error('killed');
    };
    await expect(eraseSubject(options(byId('u-17'), { rest }))).rejects.toThrow('killed');
    await eraseSubject(options(byId('u-17')));
    await seal();
    await pool.query('update change_erasure set ended_at = null where tenant = $1', [tenant]);
    await eraseSubject(options(byId('u-17')));
    await seal();
    const { isRight, verdicts } = await check();
    expect({ isRight, first: verdicts[0] }).toMatchObject({
      isRight: true,
      first: { from: 1, to: people.length, verdict: 'verified' },
    });
  });

  test('the check names an entry in whose place somebody has put a name or an id since', async () => {
    await record(people);
    await seal();
    await eraseSubject(options(byId('u-17', ['user_id'])));
    await seal();
    const of = `where tenant = '${tenant}' and`;
    const tampering: [position: number, table: string, set: string, which: string][] = [
      [1, 'change_actor', `name = 'Jane Doe'`, `actor = (select actor from change_entry ${of} entity_id = 'o-0')`],
      [2, 'change_actor', `actor_id = 'u-17'`, `actor = (select actor from change_entry ${of} entity_id = 'o-1')`],
      [2, 'change_actor', 'actor_id = null', `actor = (select actor from change_entry ${of} entity_id = 'o-1')`],
      [
        3,
        'change_actor',
        `behalf_name = 'Jane Doe'`,
        `actor = (select actor from change_entry ${of} entity_id = 'o-2')`,
      ],
      [3, 'change_actor', 'behalf_name = null', `actor = (select actor from change_entry ${of} entity_id = 'o-2')`],
      [3, 'change_actor', `behalf_id = 'u-17'`, `actor = (select actor from change_entry ${of} entity_id = 'o-2')`],
      [3, 'change_entry', `erased = '["onBehalfOf.name"]'`, `entity_id = 'o-2'`],
      [1, 'change_entry', `context = '{"ip":"6.6.6.6","x":"[erased]"}'`, `entity_id = 'o-0'`],
      [3, 'change_entry', `context = '{"x":"[erased]"}'`, `entity_id = 'o-2'`],
      [4, 'change_entry', `context = '{"x":"[erased]"}', erased = '["context"]'`, `entity_id = 'o-3'`],
      [5, 'change_entry', `context = '{"user_id":"u-17","ip":"1"}'`, `entity_id = 'o-4'`],
      [5, 'change_entry', `context = '{"user_id":"[erased]","ip":"6.6.6.6"}'`, `entity_id = 'o-4'`],
    ];
    for (const [position, table, set, which] of tampering) {
      const { rows } = await pool.query(`select * from ${table} ${of} ${which}`);
      await pool.query(`update ${table} set ${set} ${of} ${which}`);
      const { isRight, verdicts, findings } = await check();
      expect(isRight, set).toBe(false);
      const isNamed = verdicts.some(
        ({ from, to, verdict }) => from <= position && position <= to && verdict === 'CHANGED',
      );
      expect(isNamed || findings.length > 0, set).toBe(true);
      const columns = Object.keys(rows[0] as object).filter((column) => /name|_id$|erased|context/.test(column));
      const values = columns.map((column) => (rows[0] as Record<string, unknown>)[column]);
      const assigned = columns.map((column, place) => `${column} = $${place + 1}`).join();
      const key = table === 'change_actor' ? 'actor' : 'sequence';
      await pool.query(`update ${table} set ${assigned} ${of} ${key} = $${columns.length + 1}`, [
        ...values,
        (rows[0] as Record<string, unknown>)[key],
      ]);
      expect((await check()).isRight).toBe(true);
    }
  });

  test('no erased row of the dictionary may stand under the lookup of a living person', async () => {
    await record([jane, { actor: 'Kim' }]);
    await seal();
    await eraseSubject(options(byId('u-17')));
    await seal();
    expect(await check()).toMatchObject({ isRight: true });
    await pool.query(
      `update change_actor a set lookup = b.lookup from change_actor b
         where a.tenant = $1 and b.tenant = $1 and a.actor_id is not null and b.name = 'Kim'`,
      [tenant],
    );
    expect((await check()).findings).toEqual([expect.stringMatching(/^Recorders look the actor erased-/)]);
  });
});
