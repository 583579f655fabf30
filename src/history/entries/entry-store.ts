import { invalidField } from '../../core/errors.ts';
import { readWithinBudget } from '../../core/fairness/piece-budget.ts';
import { ofCurrentWork } from '../../core/fairness/work.ts';
import { maxStreamedBytes, piecesOf } from '../../pagination/pieces.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { type Statements, statementsOf } from '../../postgres/statements.ts';

/** An entry as the database stores it; `related` and `paths` are JSON texts. */
export interface EntryRow {
  at: number;
  type: string;
  entity: string;
  entityId: string;
  name: string | null;
  schemaVersion: string | null;
  /** Undefined if the caller does not see it. */
  actor?: string;
  /** Of these four null or undefined: unknown, or not shown to the caller. */
  actorId?: string | null | undefined;
  onBehalfOfName?: string | null | undefined;
  onBehalfOfId?: string | null | undefined;
  correlationId?: string | null | undefined;
  related: string | null;
  paths: string;
  /** What was erased of it, as the JSON text of an array; null or left out: nothing. */
  erased?: string | null;
  circumstances?: Circumstances;
  /** 32 hexadecimal digits that identify the change at its time, if requested. */
  identity?: string;
  /** A text by which a client reads the entry again. */
  ref?: string;
  cut?: readonly string[];
  /** Its position in the feed, and the cursor of the position; both or none. */
  position?: number;
  cursor?: string;
}

/** What an entry keeps beside the members that every reader of the history sees. */
export interface Circumstances {
  /** JSON text; null if the change came without one. */
  context: string | null;
  /** JSON text; null if the entry is older than this record. */
  recordedBy: string | null;
}

/** The place of an entry in time. Within a millisecond, the entry with the higher sequence was recorded later. */
export interface Place {
  at: number;
  sequence: number;
}

/**
 * How a query was answered: from tallies alone, by documents that it names one by one, by a search in indexes, by a
 * scan of its window, or in two parts, one of which tallies count.
 */
export type PlanName = 'tallies' | 'documents' | 'search' | 'scan' | 'merged';

export interface PageOfEntries {
  plan: PlanName;
  total: number;
  entries: EntryRow[];
  /** The entries a few at a time, if their text is too much for memory at once. */
  pieces?: AsyncIterable<EntryRow[]>;
}

/** The correlation id of an entry `e`. */
export const correlationColumn = 'coalesce(e.correlation::text, e.correlation_text)';
const entryColumns = `e.at, k.type, k.entity, e.entity_id as "entityId", e.name, e.schema_version as "schemaVersion",
  a.name as actor, a.actor_id as "actorId", a.behalf_name as "onBehalfOfName", a.behalf_id as "onBehalfOfId",
  ${correlationColumn} as "correlationId", e.related, e.paths, e.erased`;
/** How an entry `e` was recorded, as JSON text. */
export const recordedByColumn = `case when e.recorded_by is null then '{"way":"import"}' when e.recorded_by = 1 then '{"way":"service"}'
  else (select json_strip_nulls(json_build_object('way', r.way, 'by', r.name, 'iss', r.issuer, 'sub', r.subject))::text
          from change_recorder r where r.tenant = e.tenant and r.recorder = e.recorded_by) end`;
const circumstanceColumns = `, e.context, ${recordedByColumn} as "recordedBy"`;
const identityColumn = `, replace(e.identity::text, '-', '') as identity`;
const withNames = `join change_kind k on k.tenant = e.tenant and k.kind = e.kind
  join change_actor a on a.tenant = e.tenant and a.actor = e.actor`;

const bytesOfEntry = 'octet_length(e.paths) + coalesce(octet_length(e.related), 0)';

interface EntryOptions {
  /** Maximum bytes of all texts together. */
  readonly maxBytes?: number;
  readonly withContext?: boolean;
  readonly withIdentity?: boolean;
}

/** The entries at these places, in the same order; undefined if their texts have more than `maxBytes` bytes. */
export async function readEntries(
  statements: Statements,
  tenant: string,
  places: readonly Place[],
  { maxBytes = Number.MAX_SAFE_INTEGER, withContext = false, withIdentity = false }: EntryOptions = {},
): Promise<EntryRow[] | undefined> {
  // PostgreSQL knows the lengths without the texts, so a text that is too long is not read.
  const { rows } = await statements.query<EntryRow & { fits: boolean } & Partial<Circumstances>>({
    text: `select found.at, found.type, found.entity, found."entityId", found.name, found."schemaVersion", found.actor, found.erased,
                  found."actorId", found."onBehalfOfName", found."onBehalfOfId", found."correlationId",
                  ${withContext ? 'found.context, found."recordedBy", ' : ''}${withIdentity ? 'found.identity, ' : ''}found.fits, case when found.fits then found.related end as related,
                  case when found.fits then found.paths end as paths
             from (
               select ${entryColumns}${withContext ? circumstanceColumns : ''}${withIdentity ? identityColumn : ''}, place.ordinal, sum(${bytesOfEntry}) over () <= $4 as fits
                 from unnest($2::bigint[], $3::bigint[]) with ordinality as place (at, sequence, ordinal)
                 join change_entry e on e.tenant = $1 and e.at = place.at and e.sequence = place.sequence ${withNames}
             ) as found
             order by found.ordinal`,
    values: [tenant, places.map((place) => place.at), places.map((place) => place.sequence), maxBytes],
  });
  if (rows[0]?.fits === false) return undefined;
  if (!withContext) return rows;
  return rows.map(({ context = null, recordedBy = null, ...row }) => ({
    ...row,
    circumstances: { context, recordedBy },
  }));
}

export async function readLengths(statements: Statements, tenant: string, places: readonly Place[]): Promise<number[]> {
  const { rows } = await statements.query<{ bytes: number }>({
    text: `select ${bytesOfEntry} as bytes
             from unnest($2::bigint[], $3::bigint[]) with ordinality as place (at, sequence, ordinal)
             join change_entry e on e.tenant = $1 and e.at = place.at and e.sequence = place.sequence
             order by place.ordinal`,
    values: [tenant, places.map((place) => place.at), places.map((place) => place.sequence)],
  });
  return rows.map((row) => row.bytes);
}

// Maximum bytes of text of a page in one piece; memory holds them several times. The second is for a caller that takes
// no pieces. An entry longer than a piece is a piece of its own; an entry has at most about 32 MiB.
export const maxPageBytes = 8 * 1024 * 1024;
const maxBytesWithoutPieces = 64 * 1024 * 1024;

/** Bytes that an entry takes in memory in addition to its texts. */
const bytesOfRow = 1024;

interface PlacesOptions extends Required<Omit<EntryOptions, 'maxBytes'>> {
  readonly tenant: string;
  /** Whether entries with much text may come as `pieces`, or all entries do. */
  readonly inPieces: boolean | 'always';
}

/** The entries of a page. Throws validation_violation if they have too much text for a caller that takes no pieces. */
export async function readPlaces(
  pool: Statements,
  transaction: DatabaseTransaction,
  places: readonly Place[],
  { tenant, inPieces, withContext, withIdentity }: PlacesOptions,
): Promise<Pick<PageOfEntries, 'entries' | 'pieces'>> {
  const statements = statementsOf(transaction);
  if (inPieces !== 'always') {
    const maxBytes = inPieces ? maxPageBytes : maxBytesWithoutPieces;
    const entries = await readEntries(statements, tenant, places, { maxBytes, withContext, withIdentity });
    if (entries !== undefined) return { entries };
  }
  const lengths = await readLengths(statements, tenant, places);
  if (!inPieces) {
    const megabytes = Math.ceil(lengths.reduce((sum, length) => sum + length, 0) / 1024 / 1024);
    throw invalidField('size', `the entries of this page have ${megabytes} MiB of text; ask for a smaller size`);
  }
  const bytes = places.map((_place, index) => bytesOfRow + (lengths[index] ?? 0));
  const bytesOf = new Map(places.map((place, index) => [place, bytes[index] ?? 0]));
  const bytesOfPiece = (piece: readonly Place[]) => piece.reduce((sum, place) => sum + (bytesOf.get(place) ?? 0), 0);
  // Entries never change, so a piece needs no snapshot. A slow client holds no connection.
  const read = async (piece: readonly Place[]) => {
    const entries = await readEntries(pool, tenant, piece, { withContext, withIdentity });
    // Half an answer must not look like a whole one.
    if (entries?.length !== piece.length) throw new Error('entries were dropped while their page was being read');
    return entries;
  };
  const pieces = readWithinBudget(piecesOf(places, bytes, maxStreamedBytes), bytesOfPiece, read);
  return { entries: [], pieces: ofCurrentWork(pieces) };
}
