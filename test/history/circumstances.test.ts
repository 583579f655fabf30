import { expect, test } from 'vitest';
import { maxRecorders } from '../../src/history/search/names/recorder-store.ts';
import { foldHistory } from '../../src/history/upkeep/fold.ts';
import { inTransaction } from '../../src/postgres/transaction.ts';
import type { RecordedBy } from '../../src/recording/change.ts';
import { createRecorder, recordChanges } from '../../src/recording/record-change.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { changeOf } from '../support/server/history.ts';
import { type Call, endOfJob } from '../support/server/jobs.ts';
import { startTestServer } from '../support/server/server.ts';

const tenant = 'acme';
const manage = 'changelog.changelog_manage ai.agent_manage configuration.configuration_manage';
const posted = (body: object): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

const server = closeAfterAll(await startTestServer());
await server.createTenant(tenant);
const manager = await server.token(tenant, { scope: manage });
const call: Call = (path, init = {}) => server.call(path, { token: manager, ...init });

async function record(entityId: string, recordedBy: RecordedBy, context?: string) {
  const now = Date.now();
  const change = { ...changeOf({ at: now - 1000, entityId }), ...(context === undefined ? {} : { context }) };
  const work = async () =>
    recordedBy.way === 'import'
      ? await createRecorder(server.context.db, tenant, () => now)([change])
      : await inTransaction(server.context.db, (one) => recordChanges(one, tenant, [change], now, recordedBy));
  expect(await work()).toEqual(['recorded']);
}

async function itemOf(entityId: string, parameters = ''): Promise<Record<string, unknown>> {
  const answer = await call(`/changelog/${tenant}/changelogs?q=entity:order+entityId:${entityId}${parameters}`);
  expect(answer.status).toBe(200);
  const { items } = (await answer.json()) as { items: Record<string, unknown>[] };
  return items[0] ?? {};
}

test('an entry shows its context and how it was recorded only when requested', async () => {
  const ways: [RecordedBy, string | undefined][] = [
    [{ way: 'import' }, '{"ip":"10.0.0.1","price":1.10}'],
    [{ way: 'import' }, undefined],
    [{ way: 'service' }, undefined],
    [{ way: 'recorder', by: 'Shop' }, '{"reason":"goodwill"}'],
    [{ way: 'capture', by: 'Shop' }, undefined],
    [{ way: 'capture', by: 'Shop' }, undefined],
    [{ way: 'relay', by: 'r' }, undefined],
  ];
  for (const [index, [recordedBy, context]] of ways.entries()) await record(`way-${index}`, recordedBy, context);
  for (const [index, [recordedBy, context]] of ways.entries()) {
    const shown = await itemOf(`way-${index}`, '&context=true');
    expect(shown.recordedBy).toEqual(recordedBy);
    expect(shown.context).toEqual(context === undefined ? undefined : JSON.parse(context));
    for (const parameters of ['', '&context=false']) {
      const { context: _context, recordedBy: _recordedBy, ...rest } = shown;
      expect(await itemOf(`way-${index}`, parameters)).toEqual(rest);
    }
  }
  const text = await (await call(`/changelog/${tenant}/changelogs?q=entityId:way-0+entity:order&context=true`)).text();
  expect(text).toContain('"price":1.10');
});

test('a document of this service says so', async () => {
  await call(`/configuration/${tenant}/configurations`, posted([{ key: 'k', value: 1 }]));
  const answer = await call(`/changelog/${tenant}/changelogs?q=entity:configuration&context=true`);
  expect(((await answer.json()) as { items: unknown }).items).toMatchObject([
    { entityId: 'k', recordedBy: { way: 'service' } },
  ]);
});

test('an entry recorded before Annals stored recordedBy has none', async () => {
  await record('old', { way: 'import' });
  await server.database.pool.query(`update change_entry set recorded_by = 0 where tenant = $1 and entity_id = 'old'`, [
    tenant,
  ]);
  expect(await itemOf('old', '&context=true')).not.toHaveProperty('recordedBy');
});

test('the same id and time with another context or other marks is a conflict, except for an old entry', async () => {
  const now = Date.now();
  const change = changeOf({ at: now, entityId: 'same' });
  const outcomes = async (...changes: (typeof change)[]) =>
    await createRecorder(server.context.db, tenant, () => now)(changes);
  const annotated = { ...change, context: '{"a":1}', marks: '{"whole":true}' };
  expect(await outcomes(annotated)).toEqual(['recorded']);
  expect(
    await outcomes(annotated, change, { ...annotated, context: '{"a":2}' }, { ...annotated, marks: '{"root":true}' }),
  ).toEqual(['duplicate', 'conflict', 'conflict', 'conflict']);
  await server.database.pool.query(`update change_entry set recorded_by = 0 where tenant = $1 and entity_id = 'same'`, [
    tenant,
  ]);
  expect(await outcomes(annotated, change)).toEqual(['duplicate', 'duplicate']);
});

test('the context needs changelog.changelog_manage, in the list and in exports', async () => {
  const token = await server.token(tenant, { scope: 'changelog.changelog_read ai.agent_manage' });
  expect((await server.call(`/changelog/${tenant}/changelogs?context=true`, { token })).status).toBe(403);
  // The scope is checked before other faults.
  expect((await server.call(`/changelog/${tenant}/changelogs?context=true&page=0&q=x`, { token })).status).toBe(403);
  expect((await server.call(`/changelog/${tenant}/entries?context=true`, { token })).status).toBe(403);
  expect((await server.call(`/changelog/${tenant}/changelogs?context=false`, { token })).status).toBe(200);
  expect((await call(`/changelog/${tenant}/changelogs?context=yes`)).status).toBe(400);
  const body = { type: 'EXPORT', format: 'NDJSON', context: true };
  const answer = await server.call(`/ai-service/${tenant}/jobs`, { token, ...posted(body) });
  expect(answer.status).toBe(403);
});

test.each(['NDJSON', 'CSV'])('an export as %s has the context only if its job requests it', async (format) => {
  const q = 'entity:order entityId:way-0';
  const fileOf = async (body: object) => {
    const made = await call(`/ai-service/${tenant}/jobs`, posted({ type: 'EXPORT', q, format, ...body }));
    expect(made.status).toBe(201);
    const { jobId } = (await made.json()) as { jobId: string };
    expect((await endOfJob(call, tenant, jobId)).status).toBe('success');
    return await (await call(`/ai-service/${tenant}/jobs/${jobId}/content`)).text();
  };
  const plain = await fileOf({});
  expect(plain).not.toMatch(/context|recordedBy|10\.0\.0\.1/);
  const full = await fileOf({ context: true });
  if (format === 'NDJSON') {
    const ending = ',"context":{"ip":"10.0.0.1","price":1.10},"recordedBy":{"way":"import"}}\n';
    expect(full).toBe(plain.replace(/\}\n$/, ending));
  } else {
    // Who exactly has the last four columns.
    expect(full.split('\r\n')[0]).toBe(plain.split('\r\n')[0]?.replace('paths,', 'paths,context,recordedBy,'));
    expect(full).toContain(',"{""ip"":""10.0.0.1"",""price"":1.10}","{""way"":""import""}",,,,\r\n');
  }
});

test('each recorder is listed with the time of its last recording, folded or not', async () => {
  const { db, pool } = server.database;
  await server.createTenant('globex');
  const token = await server.token('globex', { scope: 'changelog.changelog_manage' });
  const recorders = async () => await (await server.call('/changelog/globex/recorders', { token })).json();
  const fold = () => foldHistory(db, 'globex');
  const start = Date.UTC(2026, 8, 15);
  const at = (second: number) => new Date(start + second * 1_000).toISOString();
  const recordAt = async (second: number, recordedBy: RecordedBy, ...ids: string[]) => {
    const changes = ids.map((entityId) => changeOf({ at: start, entityId, identity: Buffer.alloc(16, entityId) }));
    return await inTransaction(db, (one) => recordChanges(one, 'globex', changes, start + second * 1_000, recordedBy));
  };
  expect(await recorders()).toEqual({ recorders: [] });

  await recordAt(1, { way: 'import' }, 'a', 'b');
  await recordAt(2, { way: 'recorder', by: 'Shop' }, 'c');
  await recordAt(3, { way: 'service' }, 'd');
  await recordAt(4, { way: 'relay', by: 'Shop' }, 'e', 'f');
  await recordAt(5, { way: 'import' }, 'g');
  const expected = {
    recorders: [
      { way: 'import', lastRecordedAt: at(5) },
      { way: 'relay', by: 'Shop', lastRecordedAt: at(4) },
      { way: 'service', lastRecordedAt: at(3) },
      { way: 'recorder', by: 'Shop', lastRecordedAt: at(2) },
    ],
  };
  expect(await recorders()).toEqual(expected);
  await fold();
  expect(await recorders()).toEqual(expected);
  // A duplicate, alone or in a batch, does not count, and a slow clock never moves the time back.
  expect(await recordAt(6, { way: 'service' }, 'd')).toEqual(['duplicate']);
  expect(await recordAt(6, { way: 'relay', by: 'Shop' }, 'e', 'f')).toEqual(['duplicate', 'duplicate']);
  await recordAt(0, { way: 'service' }, 'h');
  expect(await recorders()).toEqual(expected);
  await fold();
  expect(await recorders()).toEqual(expected);
  const { rows } = await pool.query(`select from change_delta where tenant = 'globex'`);
  expect(rows).toEqual([]);

  // A tenant older than this record.
  await pool.query(`insert into change_way values ('globex', 0, $1)`, [start - 1_000]);
  expect(await recorders()).toEqual({ ...expected, since: at(-1) });
  const made = await pool.query(
    `with made as (
       insert into change_recorder (tenant, recorder, lookup, way, name) overriding system value
         select 'globex', n + 1000, gen_random_uuid(), 'capture', 'c' || n from generate_series(1, $1::integer) as n
         returning recorder
     ) insert into change_way select 'globex', recorder, 0 from made`,
    [maxRecorders - expected.recorders.length + 1],
  );
  expect(made.rowCount).toBe(maxRecorders - 3);
  expect((await recorders()) as typeof expected).toMatchObject({ recorders: { length: maxRecorders }, since: at(-1) });
});

test('a client that may not see how entries were recorded may not list recorders', async () => {
  const token = await server.token(tenant, { scope: 'changelog.changelog_read' });
  expect((await server.call(`/changelog/${tenant}/recorders`, { token })).status).toBe(403);
});
