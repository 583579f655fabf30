import { CompiledQuery } from 'kysely';
import { int8Array, uuidArray } from '../postgres/binary-arrays.ts';
import type { Connection } from '../postgres/database.ts';
import type { Change } from './change.ts';

/** The identities, in hexadecimal, of those changes that are recorded already. */
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
select e.identity::text from unnest($2::bigint[], $3::uuid[]) as wanted (at, identity)
  join change_entry e on e.tenant = $1 and e.at = wanted.at and e.identity = wanted.identity`;
