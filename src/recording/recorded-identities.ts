import { CompiledQuery } from 'kysely';
import { int8Array, uuidArray } from '../postgres/binary-arrays.ts';
import type { Connection } from '../postgres/database.ts';
import type { Change } from './change.ts';

/** The identities, in hexadecimal, of the changes already recorded. */
export async function recordedIdentities(
  db: Connection,
  tenant: string,
  changes: readonly Pick<Change, 'at' | 'identity'>[],
): Promise<ReadonlySet<string>> {
  const { rows } = await db.executeQuery<{ identity: string }>(
    CompiledQuery.raw(identitiesStatement, [
      tenant,
      int8Array(changes.map(({ at }) => at)),
      uuidArray(changes.map(({ identity }) => identity)),
    ]),
  );
  return new Set(rows.map(({ identity }) => identity.replaceAll('-', '')));
}

const identitiesStatement = `
select e.identity::text from unnest($2::bigint[], $3::uuid[]) as input (at, identity)
  join change_entry e on e.tenant = $1 and e.at = input.at and e.identity = input.identity`;
