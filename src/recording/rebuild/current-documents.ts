import { CompiledQuery } from 'kysely';
import { hashOf } from '../../core/text-hash.ts';
import { textArray, uuidArray } from '../../postgres/binary-arrays.ts';
import type { Connection } from '../../postgres/database.ts';
import type { ChangeType } from '../change.ts';
import type { RebuiltDocument } from './document-rebuild.ts';
import { rebuildDocument } from './document-rebuild.ts';

/** Rebuilds the current documents of an entity, in the order of the ids. Undefined: no entry has that id. */
export async function currentDocuments(
  db: Connection,
  tenant: string,
  entity: string,
  entityIds: readonly string[],
): Promise<(RebuiltDocument | undefined)[]> {
  const parameters = [tenant, entity, uuidArray(entityIds.map(hashOf)), textArray(entityIds)];
  const { rows } = await db.executeQuery<{
    ordinal: number;
    type: ChangeType;
    paths: string;
    marks: string | null;
    isMarked: boolean;
  }>(CompiledQuery.raw(entriesStatement, parameters));
  const entries = Map.groupBy(rows, ({ ordinal }) => ordinal);
  return entityIds.map((_id, index) => {
    const own = entries.get(index + 1);
    return own === undefined ? undefined : rebuildDocument(own, []);
  });
}

// A document is known from its newest create or delete on.
const entriesStatement = `
select requested.ordinal, entry.*
  from unnest($3::uuid[], $4::text[]) with ordinality as requested (document, entity_id, ordinal)
  cross join lateral (
    select k.type, e.paths, e.marks, e.recorded_by is distinct from 0 as "isMarked"
      from change_entry e join change_kind k on k.tenant = e.tenant and k.kind = e.kind
     where e.tenant = $1 and e.document = requested.document and e.entity_id = requested.entity_id and k.entity = $2
       and (e.at, e.sequence) >= coalesce((
             select (s.at, s.sequence)
               from (select a.at, a.sequence
                       from change_entry a join change_kind ak on ak.tenant = a.tenant and ak.kind = a.kind
                      where a.tenant = $1 and a.document = requested.document and a.entity_id = requested.entity_id
                        and ak.entity = $2 and ak.type in ('create', 'delete') and a.paths <> '{}'
                      order by a.at desc, a.sequence desc limit 1) s), (0::bigint, 0::bigint))
     order by e.at, e.sequence) as entry
 order by requested.ordinal`;

interface ExistingDocuments {
  entityIds: string[];
  /** The key of the next page; undefined after the last one. */
  next: string | undefined;
}

interface ExistingPage {
  /** `next` of the previous page. */
  after: string | undefined;
  limit: number;
  /** The time, in milliseconds since 1970. Default: now. */
  until?: number;
  /** Excludes documents whose id was erased, since no source knows their new id. */
  withoutErased?: boolean;
}

/** A page of the ids of an entity's documents whose newest entry is not a delete, in arbitrary order. */
export async function existingDocuments(
  db: Connection,
  tenant: string,
  entity: string,
  { after = '00000000-0000-0000-0000-000000000000', limit, until, withoutErased = false }: ExistingPage,
): Promise<ExistingDocuments> {
  const { rows } = await db.executeQuery<NewestEntry>(
    CompiledQuery.raw(newestStatement, [tenant, entity, after, limit, until ?? null]),
  );
  const existing = rows.filter((row) => row.type !== 'delete' && !(withoutErased && isOfErasedDocument(row)));
  return {
    entityIds: existing.map((row) => row.entity_id),
    next: rows.length < limit ? undefined : rows.at(-1)?.document,
  };
}

interface NewestEntry {
  readonly document: string;
  readonly entity_id: string;
  readonly type: ChangeType;
  /** JSON text: the list of the entry's erased parts. */
  readonly erased: string | null;
}

function isOfErasedDocument({ erased }: NewestEntry): boolean {
  return erased !== null && JSON.parse(erased).includes('entityId');
}

// Ids with equal hashes are one document, as everywhere in storage.
const newestStatement = `
select distinct on (e.document) e.document::text, e.entity_id, k.type, e.erased
  from change_entry e join change_kind k on k.tenant = e.tenant and k.kind = e.kind
 where e.tenant = $1 and k.entity = $2 and e.document > $3::uuid
   and ($5::bigint is null or e.at <= $5)
 order by e.document, e.at desc, e.sequence desc
 limit $4`;
