import { sql } from 'kysely';
import { int4Array, int8Array, textArray } from '../../postgres/binary-arrays.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { type BacklogOptions, type TenantWork, workInTurn } from '../../postgres/tenants/tenants-with.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { pathColumns } from '../../recording/path-columns.ts';
import { documentNumber, type NamedDocuments, nameDocuments, waitForFolds } from '../directory/name-documents.ts';

/** Entries of a portion, and bytes of the texts of their paths; it has at least one entry. */
export const entriesOfPortion = 2_000;
export const bytesOfPortion = 8 * 1024 * 1024;

/** Tenants whose older entries may have no numbers of paths, and documents that the directory does not have. */
export const unnumberedPaths: TenantWork = { table: 'change_path_backlog', condition: 'true' };

/** Numbers the paths of the entries that an earlier version recorded, and names their documents in the directory. */
export async function numberPathsOfTenants(db: Database, options: BacklogOptions): Promise<void> {
  await workInTurn(unnumberedPaths, options, async (tenant) => !(await numberPortion(db, tenant)));
}

/**
 * Numbers and names some entries of a tenant, the newest first. Returns whether none is left. Each call is a short
 * transaction. Queries read the entries that have no numbers yet.
 */
export async function numberPortion(db: Database, tenant: string): Promise<boolean> {
  return await inTransaction(db, async (transaction) => {
    const rows = await readOlder(transaction, tenant);
    const last = rows.at(-1);
    if (last === undefined) {
      await sql`delete from change_path_backlog where tenant = ${tenant}`.execute(transaction);
      return true;
    }
    await waitForFolds(transaction, tenant);
    await nameDocuments(transaction, tenant, rows.flatMap(namedOf));
    const { numbers, entities, names, rest, ofEntries } = pathColumns(tenant, rows);
    const { rows: registered } = await sql<{ left: number[] }>`
      select path_register(${tenant}, ${int4Array(numbers)}, ${textArray(entities)},
        ${textArray(names)}, ${rest}) as left`.execute(transaction);
    const withoutRoom = new Set(registered.flatMap(({ left }) => left));
    const numbered = ofEntries.flatMap((numbersOf, place) => numbersOf.map((number) => ({ entry: place + 1, number })));
    const [ats, sequences] = [int8Array(rows.map(({ at }) => at)), int8Array(rows.map(({ sequence }) => sequence))];
    const entries = int4Array(numbered.map(({ entry }) => entry));
    const ofEntry = int4Array(numbered.map(({ number }) => (withoutRoom.has(number) ? rest : number)));
    // Integers, and no texts of arrays: a cluster refuses to read these in an update.
    await sql`
      update change_entry e set path_numbers = coalesce(n.numbers, '{}')
        from (
          select given.at, given.sequence, of_entry.numbers
            from unnest(${ats}::bigint[], ${sequences}::bigint[]) with ordinality as given (at, sequence, entry)
            left join (
              select one.entry, array_agg(distinct one.number) as numbers
                from unnest(${entries}::integer[], ${ofEntry}::integer[]) as one (entry, number) group by 1
            ) as of_entry on of_entry.entry = given.entry
        ) as n
        where e.tenant = ${tenant} and e.at = n.at and e.sequence = n.sequence and e.path_numbers is null`.execute(
      transaction,
    );
    await sql`
      update change_path_backlog set at = ${last.at}, sequence = ${last.sequence} where tenant = ${tenant}`.execute(
      transaction,
    );
    return false;
  });
}

interface OlderEntry {
  at: number;
  sequence: number;
  entity: string;
  document: string;
  name: string | null;
  paths: string;
}

function namedOf({ entity, document, name }: OlderEntry): NamedDocuments[] {
  return name === null ? [] : [{ entity, name, documents: [documentNumber(document)] }];
}

async function readOlder(transaction: DatabaseTransaction, tenant: string): Promise<OlderEntry[]> {
  const { rows } = await sql<OlderEntry>`
    with newest as (
      select e.at, e.sequence, e.kind, octet_length(e.paths) as bytes from change_entry e
        where e.tenant = ${tenant}
          and (e.at, e.sequence) < (select b.at, b.sequence from change_path_backlog b where b.tenant = ${tenant})
        order by e.at desc, e.sequence desc limit ${entriesOfPortion}
    ), measured as (
      select n.*, sum(n.bytes) over (order by n.at desc, n.sequence desc) - n.bytes as before from newest n
    )
    select e.at, e.sequence, k.entity, e.document, e.name, e.paths
      from measured m
      join change_entry e on e.tenant = ${tenant} and e.at = m.at and e.sequence = m.sequence
      join change_kind k on k.tenant = ${tenant} and k.kind = m.kind
      where m.before < ${bytesOfPortion}
      order by e.at desc, e.sequence desc`.execute(transaction);
  return rows;
}
