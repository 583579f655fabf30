import type { TestDatabase } from './database.ts';

export interface Entry {
  type: string;
  entity: string;
  entityId: string;
  actor: string;
  at: number;
  paths: Record<string, { before?: unknown; after?: unknown }>;
  related: string | null;
  marks: string | null;
  context: string | null;
  name: string | null;
}

/** All entries of a tenant, the oldest first. */
export async function entriesOf(history: TestDatabase, tenant = 'acme'): Promise<Entry[]> {
  const { rows } = await history.pool.query(
    `select k.type, k.entity, e.entity_id as "entityId", a.name as actor, e.at, e.paths, e.related, e.marks, e.context, e.name
       from change_entry e
       join change_kind k on k.tenant = e.tenant and k.kind = e.kind
       join change_actor a on a.tenant = e.tenant and a.actor = e.actor
      where e.tenant = $1 order by e.at, e.sequence`,
    [tenant],
  );
  return rows.map((row) => ({ ...row, paths: JSON.parse(row.paths) }));
}

export async function countOfEntries(history: TestDatabase, tenant = 'acme'): Promise<number> {
  const { rows } = await history.pool.query('select count(*)::integer as entries from change_entry where tenant = $1', [
    tenant,
  ]);
  return rows[0].entries;
}
