import pg from 'pg';
import { expect, inject, test } from 'vitest';
import type { ExportPiece, ExportRequest } from '../../../src/core/export-history.ts';
import { createExportHistory } from '../../../src/history/export/export-history.ts';
import { DictionaryCache } from '../../../src/history/search/names/dictionary-cache.ts';
import { RegexMatcherPool } from '../../../src/query/regex-pool.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { moveTenant, workerUrlOf } from '../../support/server/cluster.ts';
import { changesOf, now } from '../../support/server/cluster-changes.ts';
import { startTestServer } from '../../support/server/server.ts';

// This file runs where CITUS_DATABASE_URL and CITUS_WORKERS name a cluster of a coordinator and two workers.
const cluster = inject('cluster') ?? { url: '', workers: [] };
const regexes = new RegexMatcherPool();
const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));

/** Exports the history in small pieces. A first piece takes the place of all that came before. */
function exporterOf(tenant: string) {
  const { db, pool } = server.database;
  const exports = createExportHistory({
    db,
    regexes,
    now: () => now,
    dictionaries: new DictionaryCache(pool),
    pieceBytes: 500,
  });
  return async (before: readonly ExportPiece[], cut = Number.POSITIVE_INFINITY): Promise<ExportPiece[]> => {
    let pieces = [...before];
    const last = pieces.at(-1);
    const resume: ExportRequest['resume'] = last && { ...last.of, after: last.last };
    let taken = 0;
    const { signal } = new AbortController();
    const run = exports.run({ tenant, q: '', format: 'NDJSON', askedAt: now, resume, signal }, async (piece) => {
      pieces = piece.isFirst ? [piece] : [...pieces, piece];
      taken += 1;
      if (taken >= cut) throw new Error('cut');
    });
    if (cut === Number.POSITIVE_INFINITY) await run;
    else await expect(run).rejects.toThrow('cut');
    return pieces;
  };
}

const textOf = (pieces: readonly ExportPiece[]) => pieces.map(({ text }) => text).join('');

test('an export that was cut off has the entries of its snapshot alone, and starts over after a move, forth and back', async () => {
  const tenant = 'exported';
  const { db, pool } = server.database;
  await server.createTenant(tenant);
  const record = createRecorder(db, tenant, () => now);
  // The transaction ids of the first worker are then far higher than those of the other one.
  const worker = new pg.Client(await workerUrlOf(server.database.url, pool, tenant));
  await worker.connect();
  await worker.query(
    `do $$ begin for n in 1..20000 loop begin perform pg_current_xact_id(); create temp table t (); raise 'no';
       exception when others then null; end; end loop; end $$`,
  );
  await worker.end();
  await record(changesOf(tenant, 0, 60));
  const run = exporterOf(tenant);

  const whole = textOf(await run([]));
  const begun = await run([], 2);
  await record(changesOf(tenant, 60, 10));
  expect(textOf(await run(begun))).toBe(whole);

  let cut = begun;
  for (let move = 0; move < 2; move += 1) {
    await moveTenant(cluster, pool, tenant);
    // Not the snapshot of the first worker, though the tenant is there again after the second move.
    const resumed = await run(cut);
    expect(textOf(resumed)).toBe(textOf(await run([])));
    // Entries of the other worker belong to a snapshot of this one.
    const here = await run([], 2);
    const expected = textOf(await run([]));
    await record(changesOf(tenant, 70 + 10 * move, 10));
    expect(textOf(await run(here))).toBe(expected);
    cut = here;
  }
});
