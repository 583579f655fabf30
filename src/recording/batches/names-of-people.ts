import { CompiledQuery } from 'kysely';
import { textArray, uuidArray } from '../../postgres/binary-arrays.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { type Change, unknownActor } from '../change.ts';
import { documentHash } from '../entry-columns.ts';

/**
 * The changes, where those with the id of their actor and no name have the last name of the document with this id among
 * those of the entity type `people`: as recorded, or by a change of the batch up to this one. Such a name is derived,
 * whether or not there is one yet, so that a repeat with another name is a duplicate.
 */
export async function withNamesOfPeople(
  transaction: DatabaseTransaction,
  tenant: string,
  changes: readonly Change[],
  people: string,
): Promise<readonly Change[]> {
  const wanted = new Set(changes.flatMap((change) => idWithoutName(change) ?? []));
  if (wanted.size === 0) return changes;
  const names = await lastNames(transaction, tenant, [...wanted], people);
  return changes.map((change) => {
    if (change.entity === people && change.name !== undefined) names.set(change.entityId, change.name);
    const id = idWithoutName(change);
    if (id === undefined) return change;
    return { ...change, actor: names.get(id) ?? unknownActor, derived: { ...change.derived, actor: true } };
  });
}

function idWithoutName({ actor, actorId }: Change): string | undefined {
  return actor === unknownActor ? actorId : undefined;
}

async function lastNames(
  transaction: DatabaseTransaction,
  tenant: string,
  ids: readonly string[],
  people: string,
): Promise<Map<string, string>> {
  const { rows } = await transaction.executeQuery<{ id: string; name: string }>(
    CompiledQuery.raw(statement, [tenant, textArray(ids), uuidArray(ids.map(documentHash)), people]),
  );
  return new Map(rows.map(({ id, name }) => [id, name]));
}

/**
 * The newest entries of a document are enough: each change of a mapped row has its name. Documents of other types may
 * have the same id and many entries, so the kinds are read once, and not for each entry.
 */
const statement = `
select person.id, last.name
  from unnest($2::text[], $3::uuid[]) as person (id, document)
  cross join lateral (
    select newest.name
      from (select e.at, e.sequence, e.name
              from change_entry e
              where e.tenant = $1 and e.document = person.document and e.entity_id = person.id
                and e.kind = any (array(select k.kind from change_kind k where k.tenant = $1 and k.entity = $4))
              order by e.at desc, e.sequence desc limit 64) as newest
      where newest.name is not null order by newest.at desc, newest.sequence desc limit 1
  ) as last`;
