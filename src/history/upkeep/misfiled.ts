import { sql } from 'kysely';
import { hashOf } from '../../core/text-hash.ts';
import type { Database } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { isReplacement } from '../../proof/bundle/proven-entry.ts';
import { documentNumber, findWrongNames } from '../documents/name-documents.ts';
import { foldHistory } from './fold.ts';

const rowsAtOnce = 2_000;
/** Times that changes may arrive between a fold and the look behind it. */
const maxLooks = 3;

interface NamedDocument {
  readonly entity: string;
  readonly entityId: string;
  readonly name: string;
}

/**
 * Documents that the directory of names has not, or under words of another name than their last one, `limit` at most: a
 * few words each.
 */
export async function findMisfiled(db: Database, tenant: string, limit: number): Promise<string[]> {
  const found: string[] = [];
  for (let after: { at: number; sequence: number } | undefined; found.length < limit; ) {
    const behind =
      after === undefined ? sql`` : sql`and (e.at, e.sequence) > (${after.at}::bigint, ${after.sequence}::bigint)`;
    const { rows } = await sql<NamedDocument & { at: number; sequence: number }>`
      select e.at, e.sequence, k.entity, e.entity_id as "entityId", e.name
        from change_entry e join change_kind k on k.tenant = ${tenant} and k.kind = e.kind
        where e.tenant = ${tenant} and e.name is not null ${behind}
        order by e.at, e.sequence limit ${rowsAtOnce}::integer`.execute(db);
    after = rows.at(-1);
    if (after === undefined) break;
    // An erased document has a random id and name, which no search is for.
    let wrong: readonly NamedDocument[] = rows.filter(({ entityId }) => !isReplacement(entityId));
    // What was recorded just now is filed by the next fold.
    for (let look = 0; look < maxLooks && wrong.length > 0; look += 1) {
      if (look > 0) await foldHistory(db, tenant);
      wrong = await wrongOf(db, tenant, wrong);
    }
    found.push(...wrong.map(({ entity, entityId }) => `${entity} ${entityId}`));
  }
  return [...new Set(found)].slice(0, limit);
}

async function wrongOf(db: Database, tenant: string, named: readonly NamedDocument[]): Promise<NamedDocument[]> {
  const rows = named.map((one) => ({ ...one, documents: [numberOf(one)] }));
  const isWrong = await inTransaction(db, (transaction) => findWrongNames(transaction, tenant, rows));
  return named.filter((one) => isWrong(one.entity, numberOf(one)));
}

/** Of its id itself: a stored hash of it may be another one, which is a finding of its own. */
function numberOf({ entityId }: NamedDocument): number {
  return documentNumber(hashOf(entityId).toString('hex'));
}
