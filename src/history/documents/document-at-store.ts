import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { PathPattern } from '../../core/path-pattern.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import type { ChangeType } from '../../recording/change.ts';
import type { RebuildChunk } from '../../recording/rebuild/incremental-rebuild.ts';
import type { Place } from '../entries/entry-store.ts';
import { hideValues } from '../entries/masks.ts';
import type { Dictionary } from '../search/names/dictionary.ts';

/** The entries of one document that a tenant still keeps. */
export interface DocumentEntries {
  readonly transaction: DatabaseTransaction;
  readonly tenant: string;
  readonly document: string;
  readonly kinds: readonly number[];
  readonly since: number;
  /** Paths whose values are masked. */
  readonly hide: readonly PathPattern[];
}

/** A range of entries; both ends are included. */
export interface EntryRange {
  readonly from: Place;
  readonly until: Place;
}

interface LastChange extends Place {
  readonly kind: number;
  readonly actor: number;
}

interface EntriesUntil {
  readonly total: number;
  readonly changes: number;
  readonly last: LastChange | undefined;
}

/**
 * The entries up to a moment (included, in milliseconds since 1970), or up to the n-th one; `last` is undefined if
 * there are fewer.
 */
export async function readUntil(
  of: DocumentEntries,
  when: { readonly at: number } | { readonly changes: number },
): Promise<EntriesUntil> {
  const changes = 'at' in when ? sql`count(*) filter (where e.at <= ${when.at})` : sql`${when.changes}::bigint`;
  const last =
    'at' in when
      ? sql`and e.at <= ${when.at} order by e.at desc, e.sequence desc limit 1`
      : sql`order by e.at, e.sequence offset ${when.changes - 1} limit 1`;
  const { rows } = await sql<{ total: number; changes: number; at: number | null } & Omit<LastChange, 'at'>>`
    select counted.total, counted.changes, last.at, last.sequence, last.kind, last.actor
      from (select count(*) as total, ${changes} as changes from change_entry e where ${isOf(of)}) as counted
      left join lateral (
        select e.at, e.sequence, e.kind, e.actor from change_entry e where ${isOf(of)} ${last}
      ) as last on true`.execute(of.transaction);
  const { total = 0, changes: counted = 0, at = null, sequence = 0, kind = 0, actor = 0 } = rows[0] ?? {};
  return { total, changes: counted, last: at === null ? undefined : { at, sequence, kind, actor } };
}

/** Entries without a name that are skipped in search of the newest name. */
const maxNameless = 1_000;

/** The newest name up to an entry; null if none of the last 1,000 entries has one. */
export async function readName(of: DocumentEntries, until: Place): Promise<string | null> {
  const { rows } = await sql<{ name: string }>`
    select newest.name
      from (
        select e.at, e.sequence, e.name from change_entry e
          where ${isOf(of)} and ${isUntil(until)} order by e.at desc, e.sequence desc limit ${maxNameless}
      ) as newest
      where newest.name is not null
      order by newest.at desc, newest.sequence desc limit 1`.execute(of.transaction);
  return rows[0]?.name ?? null;
}

const bytesOfEntry = sql`octet_length(e.paths) + coalesce(octet_length(e.marks), 0)`;

interface MeasuredEntry extends Place {
  readonly bytes: number;
}

/**
 * The newest entry up to `until` from which the document may be known: a delete, a create with content, or an update
 * that is marked as whole. An update has to be looked at, since it may have only the side before the change.
 */
export async function findAnchor(
  of: DocumentEntries,
  dictionary: Dictionary,
  until: Place,
): Promise<(MeasuredEntry & { isSure: boolean }) | undefined> {
  const isOfType = (type: ChangeType) =>
    sql<boolean>`e.kind = any (${of.kinds.filter((id) => dictionary.kindOf.get(id)?.type === type)}::bigint[])`;
  const isUpdate = isOfType('update');
  const { rows } = await sql<MeasuredEntry & { isSure: boolean }>`
    select e.at, e.sequence, ${bytesOfEntry} as bytes, not ${isUpdate} as "isSure" from change_entry e
      where ${isOf(of)} and ${isUntil(until)} and (
        ${isOfType('delete')}
        or e.paths <> '{}' and (${isOfType('create')} or ${isUpdate} and e.marks like '%"whole":true%'))
      order by e.at desc, e.sequence desc limit 1`.execute(of.transaction);
  return rows[0];
}

/** The places and lengths of the entries in a range, oldest first, at most `max`. */
export async function measureEntries(
  of: DocumentEntries,
  { from, until }: { from: Place; until: Place | undefined },
  max: number,
): Promise<MeasuredEntry[]> {
  const { rows } = await sql<MeasuredEntry>`
    select e.at, e.sequence, ${bytesOfEntry} as bytes from change_entry e
      where ${isOf(of)} and ${isFrom(from)} and ${until === undefined ? sql`true` : isUntil(until)}
      order by e.at, e.sequence limit ${max}`.execute(of.transaction);
  return rows;
}

export async function readChunk(
  of: DocumentEntries,
  dictionary: Dictionary,
  { from, until }: EntryRange,
): Promise<RebuildChunk> {
  const { rows } = await sql<{ kind: number; paths: string; marks: string | null; isMarked: boolean }>`
    select e.kind, e.paths, e.marks, e.recorded_by is distinct from 0 as "isMarked" from change_entry e
      where ${isOf(of)} and ${isFrom(from)} and ${isUntil(until)}
      order by e.at, e.sequence`.execute(of.transaction);
  const paths = rows.map((row) => row.paths);
  return {
    types: rows.map(({ kind }) => typeOf(dictionary, kind)),
    paths: await hideValues(paths, of.hide),
    marks: rows.map(({ marks }) => marks),
    isMarked: rows.map(({ isMarked }) => isMarked),
  };
}

function typeOf(dictionary: Dictionary, kind: number): ChangeType {
  const type = dictionary.kindOf.get(kind)?.type;
  if (type !== 'create' && type !== 'update' && type !== 'delete') throw new Error('a kind has an unknown type');
  return type;
}

function isOf({ tenant, document, kinds, since }: DocumentEntries): RawBuilder<SqlBool> {
  return sql`e.tenant = ${tenant} and e.document = ${document}::uuid and e.kind = any (${kinds}::bigint[]) and e.at >= ${since}`;
}

function isFrom({ at, sequence }: Place): RawBuilder<SqlBool> {
  return sql`(e.at, e.sequence) >= (${at}::bigint, ${sequence}::bigint)`;
}

function isUntil({ at, sequence }: Place): RawBuilder<SqlBool> {
  return sql`(e.at, e.sequence) <= (${at}::bigint, ${sequence}::bigint)`;
}
