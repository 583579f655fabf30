import { correlationSeal } from '../../core/correlation-seal.ts';
import type {
  ExportHistory,
  ExportPiece,
  ExportRequest,
  ExportRows,
  ExportSnapshot,
} from '../../core/export-history.ts';
import { TimeSlice } from '../../core/fairness/time-slice.ts';
import { doWork } from '../../core/fairness/work.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { Restriction } from '../../http/credentials.ts';
import type { Scope } from '../../http/scopes.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import type { RegexMatcherPool } from '../../query/regex-pool.ts';
import type { Place } from '../entries/entry-store.ts';
import { hideLines } from '../entries/masks.ts';
import type { Dictionary } from '../search/names/dictionary.ts';
import type { DictionaryCache } from '../search/names/dictionary-cache.ts';
import { needsDocumentIds } from '../search/plan/resolve.ts';
import { parseOwnQuery, readRestriction, usesContext } from '../search/plan/restriction.ts';
import { planTallies } from '../search/plan/tally-plan.ts';
import { entryConditions } from '../search/predicate.ts';
import { type Search, searchOf } from '../search/search.ts';
import { isUnderestimated } from '../search/search-store.ts';
import { openSnapshot, type QueryAtMoment, queryAt, readSnapshot, resolveInTransaction } from '../search/snapshot.ts';
import { csvHead, openLines, readExportSnapshot, takeLines } from './export-store.ts';
import { sealLines } from './seal-lines.ts';

interface ExportDependencies {
  /** Each export holds one connection of this pool until it ends. */
  db: Database;
  regexes: RegexMatcherPool;
  now: () => number;
  dictionaries: DictionaryCache;
  /** Seals the correlation ids of restricted readers. Left out: their files have none. */
  sealer?: Sealer | undefined;
  /** Approximate bytes of a piece; default 1 MiB. */
  pieceBytes?: number;
}

const defaultPieceBytes = 1024 * 1024;
/** Maximum milliseconds between the clocks of two processes, one of which drops old entries while the other exports. */
const clockMargin = 3_600_000;

export function createExportHistory(dependencies: ExportDependencies): ExportHistory {
  const { db, dictionaries, sealer, pieceBytes = defaultPieceBytes } = dependencies;

  function restrictionOf({ tenant, restriction, clientId }: ExportRequest): Restriction | undefined {
    const read = restriction && readRestriction(restriction);
    if (read === undefined || sealer === undefined || clientId === undefined) return read;
    return { ...read, correlations: correlationSeal(sealer, { tenant, maker: clientId, subject: '' }) };
  }

  async function exportAll(
    transaction: DatabaseTransaction,
    request: ExportRequest,
    known: Dictionary,
    take: (piece: ExportPiece) => Promise<void>,
  ): Promise<void> {
    const restriction = restrictionOf(request);
    const { rows = 'change' } = request;
    const { of, resumed } = await open(dependencies, transaction, { ...request, restriction }, known);
    let isFirst = !resumed;
    const next = async () => {
      const lines = await takeLines(transaction, pieceBytes);
      request.signal.throwIfAborted();
      const inParts = partsOf(rows, restriction);
      if (lines === undefined || inParts === undefined) return lines;
      const { format } = request;
      const sealed = inParts === 'plain' ? lines.text : await sealLines(lines.text, format, restriction?.correlations);
      return { ...lines, text: await hideLines(sealed, { format, rows, hide: restriction?.hide ?? [] }) };
    };
    if (isFirst && request.format === 'CSV') {
      await take({ text: csvHead(request), entries: 0, last: beforeAll, of, isFirst });
      isFirst = false;
    }
    let taking = next();
    for (let lines = await taking; lines !== undefined; lines = await taking) {
      // The database looks for the next piece while the export stores this one.
      taking = next();
      taking.catch(() => {});
      try {
        await take({ ...lines, of, isFirst });
      } catch (error) {
        await taking.catch(() => {});
        throw error;
      }
      isFirst = false;
    }
  }

  return {
    check(q, { readsContext }) {
      return { usesContext: usesContext(parseOwnQuery(q, { scopes: scopesOf(readsContext) })) };
    },

    async run(request, take) {
      const { tenant, signal } = request;
      // The transaction has no time limit: no client waits for it.
      await doWork({ tenant, signal, stepLimit: Number.POSITIVE_INFINITY }, async () => {
        const known = await dictionaries.get(tenant);
        const work = (transaction: DatabaseTransaction) => exportAll(transaction, request, known, take);
        await inTransaction(db, work, { isolation: 'repeatable read' });
      });
    },
  };
}

/** Those that decide which terms a query may have. */
function scopesOf(readsContext = false): readonly Scope[] {
  return readsContext ? ['changelog.changelog_manage'] : [];
}

/** How the database writes lines that the service completes; undefined if it writes them whole. */
function partsOf(rows: ExportRows, restriction: Restriction | undefined): 'sealed' | 'plain' | undefined {
  if (restriction !== undefined && (restriction.hide.length > 0 || restriction.actors === 'all')) return 'sealed';
  return rows === 'field' ? 'plain' : undefined;
}

/** The place before all entries, newest first. */
const beforeAll: Place = { at: Number.MAX_SAFE_INTEGER, sequence: 0 };

/** Opens the cursor, at the beginning or behind what an earlier attempt has stored. */
async function open(
  { now, regexes }: ExportDependencies,
  transaction: DatabaseTransaction,
  request: Omit<ExportRequest, 'restriction'> & { readonly restriction: Restriction | undefined },
  known: Dictionary,
): Promise<{ of: ExportSnapshot; resumed: boolean }> {
  const { tenant, q, format, rows = 'change', withContext, readsContext, askedAt, restriction } = request;
  const { snapshot, placement } = await readExportSnapshot(transaction, tenant);
  const { horizon, dictionary } = await openSnapshot(transaction, tenant, now(), known);
  const { horizon: horizonSoon } = await readSnapshot(transaction, tenant, now() + clockMargin, dictionary);
  // The export restarts if retention has passed its beginning, since entries of the old snapshot may be gone, or if the
  // tenant has moved within a cluster, since the other worker does not know the snapshot.
  const isValid = (before: ExportSnapshot) => horizonSoon <= before.since && before.placement === placement;
  const resume = request.resume !== undefined && isValid(request.resume) ? request.resume : undefined;
  const own = parseOwnQuery(q, { restriction, scopes: scopesOf(readsContext) });
  const query = queryAt(tenant, own, askedAt, restriction);
  const since = resume?.since ?? Math.max(query.from, horizon);
  const search = await searchFor(transaction, query, { since, dictionary, regexes });
  const inParts = partsOf(rows, restriction);
  const { actors } = restriction ?? {};
  await openLines(transaction, search, { format, rows, withContext, inParts, actors, resume });
  return { of: { snapshot: resume?.snapshot ?? snapshot, placement, since }, resumed: resume !== undefined };
}

/** If only terms on documents can hold, their indexes find the entries. Otherwise the export walks along the time. */
async function searchFor(
  transaction: DatabaseTransaction,
  { tenant, query, within }: QueryAtMoment,
  { since, dictionary, regexes }: { since: number; dictionary: Dictionary; regexes: RegexMatcherPool },
): Promise<Search> {
  const slice = new TimeSlice();
  const scope = { tenant, since, within, dictionary, regexes, slice };
  const expression = await resolveInTransaction(transaction, query, scope);
  const plan = needsDocumentIds(query) ? await planTallies(expression, dictionary, since, slice) : undefined;
  const satisfies = await entryConditions(tenant, expression, dictionary, slice);
  const underestimated = await isUnderestimated(transaction, tenant);
  return plan?.intervals.length === 0
    ? await searchOf(expression, satisfies, { tenant, since, underestimated, dictionary, slice })
    : { tenant, since, underestimated, condition: satisfies(expression) };
}
