import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { chatDocument } from '../../../src/desk/jobs/job.ts';
import { insertJob } from '../../../src/desk/jobs/job-store.ts';
import type { QueuedChat } from '../../../src/desk/queued-chat.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { type Call, endOfJob, startExport } from '../../support/server/jobs.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer } from '../../support/server/server.ts';

const json = { 'content-type': 'application/json' };

const server = closeAfterAll(await startTestServer());

describe('who may do what with jobs', () => {
  const history = 'changelog.changelog_read';
  test.each([
    ['making an export', 'POST', '', history, 201],
    ['making an export', 'POST', '', 'changelog.changelog_manage', 201],
    ['making an export', 'POST', '', 'ai.agent_manage', 403],
    ['making an export with the context', 'POST', '', history, 403],
    ['making an export with the context', 'POST', '', 'changelog.changelog_manage', 201],
    ['fetching content', 'GET', '/x/content', history, 404],
    ['fetching content', 'GET', '/x/content', 'ai.agent_manage', 403],
    ['retrieving a job', 'GET', '/x', history, 404],
    ['retrieving a job', 'GET', '/x', 'ai.agent_read', 404],
    ['retrieving a job', 'GET', '/x', 'ai.agentexecution_manage', 403],
    ['deleting a job', 'DELETE', '/x', history, 404],
    ['deleting a job', 'DELETE', '/x', 'ai.agent_read', 403],
    ['deleting a job', 'DELETE', '/x', 'ai.agent_manage', 404],
    ['listing jobs', 'GET', '', history, 200],
    ['listing jobs', 'GET', '', 'ai.agent_read', 200],
    ['listing jobs', 'GET', '', 'ai.agentexecution_manage', 403],
    ['searching jobs', 'POST', '/search', 'ai.agent_read', 200],
    ['searching jobs', 'POST', '/search', 'changelog.changelog_manage', 200],
    ['searching jobs', 'POST', '/search', 'schema.schema_manage', 403],
  ])('%s (%s%s) with %s: %i', async (what, method, end, scope, status) => {
    const context = what.endsWith('context') ? { context: true } : {};
    const body =
      method === 'POST' ? JSON.stringify(end === '' ? { type: 'EXPORT', format: 'CSV', ...context } : {}) : null;
    const token = await server.token('scopes', { scope });
    const headers = body === null ? {} : json;
    const answer = await server.call(`/ai-service/scopes/jobs${end}`, { token, method, body, headers });
    expect(answer.status).toBe(status);
  });

  test('a client that may read the history alone makes, lists, reads, fetches and deletes its own exports', async () => {
    const auditor = await callerOf('audit', { scope: history, name: 'Auditor' });
    const id = await startExport(auditor, 'audit', { q: 'entity:product', format: 'NDJSON' });
    expect(await endOfJob(auditor, 'audit', id)).toMatchObject({
      status: 'success',
      metadata: { q: 'entity:product', clientId: expect.stringMatching(/^audit\./) },
    });
    expect(await idsOf(auditor, 'audit')).toEqual({ listed: [id], searched: [id], total: '1' });
    const content = await auditor(`/ai-service/audit/jobs/${id}/content`);
    expect([content.status, await content.text()]).toEqual([200, '']);
    expect((await auditor(`/ai-service/audit/jobs/${id}`, { method: 'DELETE' })).status).toBe(204);
    expect((await auditor(`/ai-service/audit/jobs/${id}`)).status).toBe(404);
  });

  test("another client's exports, and chats, are hidden from it; a scope for jobs shows them, and one to write deletes them", async () => {
    const make = async (scope: string) => await callerOf('shared', { scope, name: scope });
    const mine = await make(history);
    const otherClient = await make('changelog.changelog_manage');
    const readsAll = await make(`${history} ai.agent_read`);
    const deletesAll = await make('ai.agent_manage');
    const own = await startExport(mine, 'shared', { q: '', format: 'CSV' });
    const theirs = await startExport(otherClient, 'shared', { q: '', format: 'CSV' });
    const chat = chatDocument('a-chat', 0, queuedChat('shared'), { guardsMessage: false });
    await inTransaction(server.context.db, (transaction) =>
      insertJob(transaction, 'shared', { document: { ...chat, status: 'success' }, input: {} }),
    );
    for (const id of [own, theirs]) expect((await endOfJob(readsAll, 'shared', id)).status).toBe('success');

    expect(await idsOf(mine, 'shared')).toEqual({ listed: [own], searched: [own], total: '1' });
    const all = [own, theirs, 'a-chat'].toSorted();
    expect(await idsOf(readsAll, 'shared')).toEqual({ listed: all, searched: all, total: '3' });
    const statusOf = async (call: Call, id: string, end = '', init: RequestInit = {}) =>
      (await call(`/ai-service/shared/jobs/${id}${end}`, init)).status;
    const remove = { method: 'DELETE' };
    for (const id of [theirs, 'a-chat']) {
      expect([
        await statusOf(mine, id),
        await statusOf(mine, id, '/content'),
        await statusOf(mine, id, '', remove),
      ]).toEqual([404, 404, 404]);
    }
    expect([await statusOf(readsAll, theirs), await statusOf(readsAll, theirs, '/content')]).toEqual([200, 200]);
    expect([await statusOf(readsAll, theirs, '', remove), await statusOf(readsAll, 'a-chat', '', remove)]).toEqual([
      403, 403,
    ]);
    expect([await statusOf(deletesAll, theirs, '/content'), await statusOf(deletesAll, theirs, '', remove)]).toEqual([
      403, 204,
    ]);
    expect(await statusOf(readsAll, theirs)).toBe(404);
  });

  test('a file with the context of entries is for those who may read that', async () => {
    const manager = await callerOf('context', { scope: 'changelog.changelog_manage' });
    const reader = await callerOf('context', { scope: `${history} ai.agent_manage` });
    const made = await manager('/ai-service/context/jobs', {
      method: 'POST',
      headers: json,
      body: JSON.stringify({ type: 'EXPORT', format: 'CSV', context: true }),
    });
    const { jobId } = (await made.json()) as { jobId: string };
    expect(await endOfJob(reader, 'context', jobId)).toMatchObject({ status: 'success', metadata: { context: true } });
    const content = `/ai-service/context/jobs/${jobId}/content`;
    expect([(await reader(content)).status, (await manager(content)).status]).toEqual([403, 200]);
  });

  test('an export found by contexts shows its query, count and file to those who may read contexts', async () => {
    const manager = await callerOf('searched', { scope: 'changelog.changelog_manage' });
    const reader = await callerOf('searched', { scope: `${history} ai.agent_manage` });
    const q = 'entity:x context.ip:203.0.113.7';
    const id = await startExport(manager, 'searched', { q, format: 'CSV' });
    const plain = await startExport(manager, 'searched', { q: 'entity:x', format: 'CSV' });
    expect(await endOfJob(manager, 'searched', id)).toMatchObject({
      metadata: { q, entries: 0, searchesContext: true },
    });
    await endOfJob(manager, 'searched', plain);
    const seen = await endOfJob(reader, 'searched', id);
    const listed = async (filter: string) => {
      const parameters = new URLSearchParams({ q: filter });
      return (await (await reader(`/ai-service/searched/jobs?${parameters}`)).json()) as (typeof seen)[];
    };
    expect(seen).toMatchObject({ status: 'success', metadata: { searchesContext: true } });
    expect(JSON.stringify([seen, await listed('type:EXPORT')])).not.toContain('203.0.113.7');
    expect(await listed('type:EXPORT')).toHaveLength(2);
    for (const { metadata } of [seen, ...(await listed(`id:"${id}"`))]) {
      for (const member of ['q', 'entries', 'bytes']) expect(metadata).not.toHaveProperty(member);
    }
    // Nor does a filter find what it does not see.
    expect(await listed('metadata.entries:0')).toMatchObject([{ id: plain, metadata: { q: 'entity:x' } }]);
    const statusOf = async (call: Call, job: string) => (await call(`/ai-service/searched/jobs/${job}/content`)).status;
    expect([await statusOf(reader, id), await statusOf(manager, id), await statusOf(reader, plain)]).toEqual([
      403, 200, 200,
    ]);
  });

  test('another tenant never sees a job', async () => {
    const mine = await callerOf('mine');
    const id = await startExport(mine, 'mine', { q: '', format: 'CSV' });
    const theirs = await callerOf('theirs');
    expect((await theirs(`/ai-service/theirs/jobs/${id}`)).status).toBe(404);
    expect((await theirs(`/ai-service/mine/jobs/${id}`)).status).toBe(403);
    expect((await theirs(`/ai-service/theirs/jobs/${id}`, { method: 'DELETE' })).status).toBe(404);
    expect((await endOfJob(mine, 'mine', id)).status).toBe('success');
  });
});

describe('making an export', () => {
  test.each([
    [{ type: 'EXPORT', q: 'colour:red', format: 'CSV' }, 'Unsupported query field: colour'],
    [{ type: 'EXPORT', q: 'entityId:1', format: 'CSV' }, 'entity is required when entityId is provided'],
    [{ type: 'EXPORT', q: '', format: 'XML' }, 'The request body is not valid.'],
    [{ type: 'EXPORT', q: '' }, 'The request body is not valid.'],
    [{ type: 'AGENT_CHAT', q: '', format: 'CSV' }, 'The request body is not valid.'],
  ])('%j is 400: %s', async (body, message) => {
    const call = await callerOf('wrong');
    const response = await call('/ai-service/wrong/jobs', {
      method: 'POST',
      headers: json,
      body: JSON.stringify(body),
    });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ type: 'validation_violation', message });
    expect(await (await call('/ai-service/wrong/jobs')).json()).toEqual([]);
  });

  test('a query that only its run can refuse ends as a failure that says why', async () => {
    const call = await callerOf('costly');
    await record('costly', 3_000, (index) => `${'ab'.repeat(200)}${index}`);
    const id = await startExport(call, 'costly', {
      q: `entity:product entityId:~${'a?'.repeat(1_000)}$`,
      format: 'CSV',
    });
    const job = await endOfJob(call, 'costly', id);
    expect(job).toMatchObject({ status: 'failure', metadata: { error: { type: 'validation_violation' } } });
    expect(job.metadata.error?.message).toContain('position');
    expect((await call(`/ai-service/costly/jobs/${id}/content`)).status).toBe(404);
  });
});

describe('the content of an export', () => {
  // The key of a lock that nothing else takes.
  const heldUp = 80_710_071;

  test('is 409 while the export runs, and a deleted one stops and takes its file with it', async () => {
    const call = await callerOf('slow');
    await record('slow', 300);
    const hold = await server.database.pool.connect();
    onTestFinished(() => hold.release(true));
    // A lock on a table would stop it before: the pieces are taken from a cursor that has all its locks.
    await hold.query(`
      select pg_advisory_lock(${heldUp});
      alter function change_export_take rename to change_export_take_at_once;
      create function change_export_take(source refcursor, most bigint,
          out lines text, out entries integer, out last_at bigint, out last_sequence bigint, out last_path bigint)
        returns setof record language plpgsql as $$
        begin
          perform pg_advisory_xact_lock_shared(${heldUp});
          return query select * from change_export_take_at_once(source, most);
        end $$`);
    const id = await startExport(call, 'slow', { q: '', format: 'NDJSON' });
    const stuck = async () =>
      (
        await server.database.pool.query(
          `select from pg_stat_activity where datname = current_database() and query like '%export_lines%' and state = 'active' and wait_event_type = 'Lock' and pid <> pg_backend_pid()`,
        )
      ).rowCount;
    await eventually(stuck).toBe(1);
    const early = await call(`/ai-service/slow/jobs/${id}/content`);
    expect(early.status).toBe(409);
    expect(await early.json()).toMatchObject({ type: 'conflict_resource' });
    expect((await call(`/ai-service/slow/jobs/${id}`, { method: 'DELETE' })).status).toBe(204);
    // The export waits inside of a statement, which is ended for it.
    await eventually(stuck).toBe(0);
    await hold.query('select pg_advisory_unlock($1)', [heldUp]);
    expect((await call(`/ai-service/slow/jobs/${id}`)).status).toBe(404);
    const { rows } = await server.database.pool.query('select from job_chunk where job = $1', [id]);
    expect(rows).toEqual([]);
    const next = await startExport(call, 'slow', { q: '', format: 'NDJSON' });
    expect((await endOfJob(call, 'slow', next)).metadata.entries).toBe(300);
    expect((await call(`/ai-service/slow/jobs/${next}`, { method: 'DELETE' })).status).toBe(204);
    expect((await call(`/ai-service/slow/jobs/${next}/content`)).status).toBe(404);
    const left = await server.database.pool.query('select from job_chunk where tenant = $1', ['slow']);
    expect(left.rows).toEqual([]);
  });
});

async function callerOf(tenant: string, client: { scope?: string; name?: string } = {}): Promise<Call> {
  const token = await server.token(tenant, client);
  return (path, init) => server.call(path, { ...init, token });
}

function queuedChat(tenant: string): QueuedChat {
  const credentials = { clientId: 'c', clientName: 'Jane', scopes: [] };
  return {
    tenant,
    agentId: 'a',
    message: 'm',
    sessionId: randomUUID(),
    requestId: 'r',
    logId: randomUUID(),
    credentials,
  };
}

async function idsOf(call: Call, tenant: string) {
  const headers = { 'x-total-count': 'true' };
  const list = await call(`/ai-service/${tenant}/jobs?fields=type`, { headers });
  const search = await call(`/ai-service/${tenant}/jobs/search`, { method: 'POST', headers: json, body: '{}' });
  const ids = async (answer: Response) => ((await answer.json()) as { id: string }[]).map(({ id }) => id);
  return { listed: await ids(list), searched: await ids(search), total: list.headers.get('x-total-count') };
}

async function record(tenant: string, count: number, entityIdOf = (index: number) => `p-${index}`): Promise<void> {
  const now = server.context.clock.now();
  const recorder = createRecorder(server.context.db, tenant, () => now);
  await recorder(
    Array.from({ length: count }, (_, index) => ({
      identity: randomBytes(16),
      at: now - index,
      type: 'update' as const,
      entity: 'product',
      entityId: entityIdOf(index),
      actor: 'Jane',
      related: [],
      paths: '{}',
    })),
  );
}
