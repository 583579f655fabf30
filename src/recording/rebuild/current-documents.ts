import { CompiledQuery } from 'kysely';
import { textArray, uuidArray } from '../../postgres/binary-arrays.ts';
import type { Connection } from '../../postgres/database.ts';
import type { ChangeType } from '../change.ts';
import { hashOf } from '../entry-columns.ts';
import type { RebuiltDocument } from './document-rebuild.ts';
import { rebuildDocument } from './document-rebuild.ts';

/** Rebuilds documents of one entity as they are now, in the order of the ids. Undefined: the history has no entry of that id. */
export async function currentDocuments(
  db: Connection,
  tenant: string,
  entity: string,
  entityIds: readonly string[],
): Promise<(RebuiltDocument | undefined)[]> {
  const parameters = [tenant, entity, uuidArray(entityIds.map(hashOf)), textArray(entityIds)];
  const { rows } = await db.executeQuery<{
    place: number;
    type: ChangeType;
    paths: string;
    marks: string | null;
    isMarked: boolean;
  }>(CompiledQuery.raw(entriesStatement, parameters));
  const entries = Map.groupBy(rows, ({ place }) => place);
  return entityIds.map((_id, index) => {
    const own = entries.get(index + 1);
    return own === undefined ? undefined : rebuildDocument(own, []);
  });
}

// From the newest create or delete on, a document is known without what came before it.
const entriesStatement = `
select wanted.place, entry.*
  from unnest($3::uuid[], $4::text[]) with ordinality as wanted (document, entity_id, place)
  cross join lateral (
    select k.type, e.paths, e.marks, e.recorded_by is distinct from 0 as "isMarked"
      from change_entry e join change_kind k on k.tenant = e.tenant and k.kind = e.kind
     where e.tenant = $1 and e.document = wanted.document and e.entity_id = wanted.entity_id and k.entity = $2
       and (e.at, e.sequence) >= coalesce((
             select (s.at, s.sequence)
               from (select a.at, a.sequence
                       from change_entry a join change_kind ak on ak.tenant = a.tenant and ak.kind = a.kind
                      where a.tenant = $1 and a.document = wanted.document and a.entity_id = wanted.entity_id
                        and ak.entity = $2 and ak.type in ('create', 'delete') and a.paths <> '{}'
                      order by a.at desc, a.sequence desc limit 1) s), (0::bigint, 0::bigint))
     order by e.at, e.sequence) as entry
 order by wanted.place`;

export interface ExistingDocuments {
  entityIds: string[];
  /** Where the next page begins; undefined after the last one. */
  next: string | undefined;
}

export interface ExistingPage {
  /** `next` of the page before. */
  after: string | undefined;
  limit: number;
  /** As they were at this time, in milliseconds since 1970. Default: now. */
  until?: number;
  /** Leaves out documents whose id was erased: no source knows them by their new one. */
  withoutErased?: boolean;
}

/** A page of the ids of those documents of an entity whose newest entry is no delete. The pages have no order that means anything. */
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
  /** JSON text of a list of what is erased of the entry. */
  readonly erased: string | null;
}

function isOfErasedDocument({ erased }: NewestEntry): boolean {
  return erased !== null && JSON.parse(erased).includes('entityId');
}

// Ids whose hashes are equal are one document here, as everywhere in the storage.
const newestStatement = `
select distinct on (e.document) e.document::text, e.entity_id, k.type, e.erased
  from change_entry e join change_kind k on k.tenant = e.tenant and k.kind = e.kind
 where e.tenant = $1 and k.entity = $2 and e.document > $3::uuid
   and ($5::bigint is null or e.at <= $5)
 order by e.document, e.at desc, e.sequence desc
 limit $4`;
