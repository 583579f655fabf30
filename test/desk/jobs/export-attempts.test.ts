import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { zstdDecompress } from 'node:zlib';
import { beforeEach, describe, expect, test } from 'vitest';
import type { ExportHistory, ExportPiece } from '../../../src/core/export-history.ts';
import { Stop } from '../../../src/core/stop-signal.ts';
import { waitsForSession } from '../../../src/desk/agents/turn-store.ts';
import { exportDocument } from '../../../src/desk/jobs/job.ts';
import { findJob, insertJob, JobLost, readChunk, type TakenJob, updateJob } from '../../../src/desk/jobs/job-store.ts';
import { releaseExpiredJobs, takeNextJob } from '../../../src/desk/jobs/queue-store.ts';
import type { JobDocument } from '../../../src/desk/jobs/schemas.ts';
import { createWorker, runExport } from '../../../src/desk/jobs/worker.ts';
import { createLogger } from '../../../src/http/logger.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { lookAtOnce } from '../../support/server/look-at-once.ts';

const unpack = promisify(zstdDecompress);
const tenant = 'acme';
const now = Date.UTC(2026, 8, 15);
const scopesNow = async () => [];

let jobs = 0;
let id: string;

const database = closeAfterAll(await createTestDatabase());
await createTenant(database.db, tenant);

beforeEach(async () => {
  jobs += 1;
  id = `00000000-0000-4000-8000-${String(jobs).padStart(12, '0')}`;
  const request = { q: '', format: 'NDJSON' as const, requestId: id, clientId: 'c' };
  const input = { ...request, askedAt: now };
  await inTransaction(database.db, (transaction) =>
    insertJob(transaction, tenant, { document: exportDocument(id, now, request), input }),
  );
});

describe('the file of an export that is taken up again', () => {
  test('has nothing of the previous attempt where the export starts over', async () => {
    await attempt(await taken(), [piece('old 1\n', true), piece('old 2\n')], 'cut');
    expect(await fileOf(id)).toBe('old 1\nold 2\n');
    await attempt(await taken(), [piece('new 1\n', true), piece('new 2\n')]);
    expect(await fileOf(id)).toBe('new 1\nnew 2\n');
    expect((await documentOf(id)).metadata).toMatchObject({ entries: 2, bytes: 12 });
  });

  test('has nothing at all where its snapshot was reset and no entry is left', async () => {
    await attempt(await taken(), [piece('old 1\n', true)], 'cut');
    await database.pool.query('update job set snapshot = null');
    await attempt(await taken(), []);
    expect(await fileOf(id)).toBe('');
    expect((await documentOf(id)).metadata).toMatchObject({ entries: 0, bytes: 0 });
  });

  test('continues after the pieces of the previous attempt where the export continues', async () => {
    await attempt(await taken(), [piece('1\n', true), piece('2\n')], 'cut');
    await attempt(await taken(), [piece('3\n')]);
    expect(await fileOf(id)).toBe('1\n2\n3\n');
    expect((await documentOf(id)).metadata).toMatchObject({ entries: 3, bytes: 6 });
  });
});

test('an export whose turn is over waits again, with the pieces that it has', async () => {
  const turn = new Stop();
  const exportHistory: ExportHistory = {
    check: () => ({ usesContext: false }),
    async run(_request, take) {
      await take(piece('1\n', true));
      turn.abort(new Error('over'));
      await take(piece('2\n'));
      await take(piece('3\n'));
    },
  };
  const runChat = () => Promise.reject(new Error('nobody chats here'));
  const logger = createLogger('silent');
  const worker = createWorker({ db: database.db, logger, now: () => now, exportHistory, scopesNow, runChat });
  await worker.work(await taken(), turn);
  expect((await documentOf(id)).status).toBe('in_progress');
  expect(await takeNextJob(database.db, tenant, { type: 'EXPORT', waitsForSession })).toMatchObject({
    id,
    stalled: 1,
    progress: {},
  });
  expect(await fileOf(id)).toBe('1\n2\n');
});

describe('a worker whose job another worker has taken up', () => {
  test('adds no piece to the file, and stops', async () => {
    const [before, after] = [await taken(), await taken()];
    await attempt(after, [piece('1\n', true)], 'cut');
    await attempt(before, [piece('late\n', true)], JobLost);
    expect(await fileOf(id)).toBe('1\n');
  });

  test('does not end the job, with a success or with a failure', async () => {
    const [before, after] = [await taken(), await taken()];
    for (const status of ['success', 'failure'] as const) {
      expect(await updateJob(database.db, before, { ...before.document, status })).toBe(false);
      expect((await documentOf(id)).status).toBe('in_progress');
    }
    await attempt(before, [], JobLost);
    expect((await documentOf(id)).status).toBe('in_progress');
    expect(await updateJob(database.db, after, { ...after.document, status: 'success' })).toBe(true);
    expect((await documentOf(id)).status).toBe('success');
  });
});

describe('a job that takes its processes down with it', () => {
  test.each([
    [25, 'success'],
    [26, 'failure'],
  ])('taken up %d times without progress, it ends with a %s', async (times, status) => {
    await database.pool.query('update job set stalled = $1 where id = $2', [times - 1, id]);
    const exportHistory: ExportHistory = { check: () => ({ usesContext: false }), run: async () => {} };
    const runChat = () => Promise.reject(new Error('nobody chats here'));
    const logger = createLogger('silent');
    const worker = createWorker({ db: database.db, logger, now: () => now, exportHistory, scopesNow, runChat });
    await worker.work(await taken(), new Stop());
    expect((await documentOf(id)).status).toBe(status);
  });
});

/** Taken up by another worker: the previous one, if any, is lost. */
async function taken(): Promise<TakenJob> {
  await database.db.deleteFrom('job').where('id', '!=', id).execute();
  await database.db
    .updateTable('job')
    .set({ held_until: new Date(0) })
    .where('held_until', 'is not', null)
    .execute();
  await releaseExpiredJobs(database.db, lookAtOnce(database.db));
  const job = await takeNextJob(database.db, tenant, { type: 'EXPORT', waitsForSession });
  if (job === undefined) throw new Error('the job cannot be taken up');
  return job;
}

/** Runs the export with these pieces; once they are in the file it ends, or fails as specified. */
async function attempt(job: TakenJob, pieces: readonly ExportPiece[], failure?: 'cut' | typeof JobLost): Promise<void> {
  const exportHistory: ExportHistory = {
    check: () => ({ usesContext: false }),
    async run(_request, take) {
      for (const next of pieces) await take(next);
      if (failure === 'cut') throw new Error('cut');
      await nextTurn();
    },
  };
  const run = runExport({ db: database.db, exportHistory, scopesNow, now: () => now }, job, {
    stop: new AbortController(),
    turn: new Stop(),
  });
  if (failure === undefined) await run;
  else await expect(run).rejects.toThrow(failure);
}

function piece(text: string, isFirst = false): ExportPiece {
  return {
    text,
    entries: 1,
    last: { at: now, sequence: 1 },
    of: { snapshot: '10:10:', placement: null, since: 0 },
    isFirst,
  };
}

async function fileOf(job: string): Promise<string> {
  let text = '';
  for (let chunk = 1; ; chunk += 1) {
    const packed = await readChunk(database.db, tenant, job, chunk);
    if (packed === undefined) return text;
    text += String(await unpack(packed));
  }
}

async function documentOf(job: string): Promise<JobDocument> {
  const found = await findJob(
    database.db,
    { tenant, clientId: 'reader', readsHistory: true, readsContext: true, seesAll: true },
    job,
  );
  return JSON.parse(found?.document ?? '{}');
}
