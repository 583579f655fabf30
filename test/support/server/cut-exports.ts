import { expect } from 'vitest';
import type { ExportPiece, ExportRequest } from '../../../src/core/export-history.ts';
import { createExportHistory } from '../../../src/history/export/export-history.ts';
import { DictionaryCache } from '../../../src/history/search/names/dictionary-cache.ts';
import type { RegexMatcherPool } from '../../../src/query/regex-pool.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import type { TestDatabase } from './database.ts';
import { changeOf } from './history.ts';

const tenant = 'acme';
const now = Date.UTC(2026, 8, 15);

/** Records so many changes of an actor, a minute apart, from 2026-09-15 backwards. */
export async function recordChangesOf({ db }: TestDatabase, actor: string, count: number): Promise<void> {
  const changes = Array.from({ length: count }, (_, n) => changeOf({ at: now - n * 60_000, entityId: `${n}`, actor }));
  await createRecorder(db, tenant, () => now)(changes);
}

/** The text of an export of all changes. */
export async function wholeExport(database: TestDatabase, regexes: RegexMatcherPool): Promise<string> {
  return textOf(await piecesOf(database, regexes, {}));
}

/** The same of an export that is cut off after its second piece, and resumed after others have recorded. */
export async function resumedExport(database: TestDatabase, regexes: RegexMatcherPool): Promise<string> {
  const first = await piecesOf(database, regexes, { cut: 2 });
  const last = first.at(-1);
  if (last === undefined) throw new Error('the export has no piece');
  await recordChangesOf(database, 'late', 10);
  return textOf([...first, ...(await piecesOf(database, regexes, { resume: { ...last.of, after: last.last } }))]);
}

const textOf = (pieces: readonly ExportPiece[]) => pieces.map(({ text }) => text).join('');

async function piecesOf(
  { db, pool }: TestDatabase,
  regexes: RegexMatcherPool,
  { resume, cut }: { resume?: ExportRequest['resume']; cut?: number },
): Promise<ExportPiece[]> {
  const dictionaries = new DictionaryCache(pool);
  const exports = createExportHistory({ db, regexes, now: () => now, dictionaries, pieceBytes: 500 });
  const pieces: ExportPiece[] = [];
  const { signal } = new AbortController();
  const run = exports.run({ tenant, q: '', format: 'NDJSON', askedAt: now, resume, signal }, async (piece) => {
    pieces.push(piece);
    if (pieces.length === cut) throw new Error('cut');
  });
  if (cut === undefined) await run;
  else await expect(run).rejects.toThrow('cut');
  return pieces;
}
