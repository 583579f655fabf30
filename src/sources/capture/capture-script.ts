import pg from 'pg';
import { type Source, withSource } from '../../postgres/source/source.ts';
import { type CatalogueTable, quotedTable, readCatalogue } from '../../postgres/source/source-catalogue.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';
import { identityAdvice } from './check-mapping.ts';
import { faultsOfTable } from './mapping-faults.ts';
import { lockTimeout, publicationStatements, readPublished } from './publication.ts';
import { checkSlot } from './setup.ts';
import { defaultSlot, readSlot } from './slot.ts';
import type { TableFault } from './table-faults.ts';

export interface CaptureScript {
  /** SQL for the owner of the tables. */
  readonly text: string;
  /** Faults that no statement fixes. The script does not publish these tables. */
  readonly unsolved: readonly TableFault[];
}

/**
 * A script of everything that capture needs at the source: identities, the publication, rights. Excludes tables whose
 * updates would fail. Throws a CaptureError if the slot belongs to another database.
 */
export async function captureScript(
  mapping: Mapping,
  source: Source,
  publication = defaultSlot,
): Promise<CaptureScript> {
  return await withSource(source, async (client) => {
    const slot = await readSlot(client, publication);
    if (slot !== undefined) await checkSlot(client, publication, slot);
    const catalogue = await readCatalogue(client, [...mapping.tables.keys()]);
    const published = await readPublished(client, publication);
    const unsolved: TableFault[] =
      mapping.tenant === undefined
        ? [{ message: 'the mapping names no tenant, so only the HTTP recorder can use it' }]
        : [];
    const statements = new Set<string>();
    const targets: CatalogueTable[] = [];
    for (const [name, mapped] of mapping.tables) {
      const table = catalogue.get(name);
      const faults =
        table === undefined
          ? [{ message: `the source has no table ${name}` }]
          : faultsOfTable(mapping, mapped, table, { publication });
      const isSolved = faults.every(({ statement }) => statement !== undefined);
      if (!isSolved) unsolved.push(...faults.filter(({ statement }) => statement === undefined));
      if (isSolved) for (const { statement } of faults) if (statement !== undefined) statements.add(statement);
      // A published table stays: removing it would be a gap.
      if (table !== undefined && (isSolved || published.has(table.oid))) targets.push(table);
    }
    if (targets.length > 0) {
      for (const statement of await publicationStatements(client, publication, targets)) statements.add(statement);
    }
    const { server, grants } = await missingRights(client, targets);
    const optional = targets
      .flatMap((table) => identityAdvice(table, publication))
      .flatMap(({ statement }) => (statement === undefined || statements.has(statement) ? [] : [statement]));
    return { text: textOf({ server, statements: [...statements, ...grants], unsolved, optional }), unsolved };
  });
}

interface Parts {
  readonly server: readonly string[];
  readonly statements: readonly string[];
  readonly unsolved: readonly TableFault[];
  readonly optional: readonly string[];
}

function textOf({ server, statements, unsolved, optional }: Parts): string {
  return [
    ...(server.length + statements.length === 0
      ? ['-- Capture lacks nothing that a statement could give it.']
      : ['-- What annals capture needs here. Run it as the owner of the tables.']),
    ...(server.length === 0
      ? []
      : ['-- This part needs a superuser. Restart the server where it changes wal_level.', ...server]),
    ...(statements.length === 0
      ? []
      : [
          'begin;',
          `-- An application that waits behind a lock does so for ${lockTimeout} at most; nothing is changed then, and you can run this again.`,
          `set local lock_timeout = '${lockTimeout}';`,
          ...statements,
          'commit;',
        ]),
    ...(unsolved.length === 0
      ? []
      : ['-- No statement solves this:', ...unsolved.map(({ message }) => comment(message))]),
    ...(optional.length === 0
      ? []
      : [
          '-- Optional: entries then have all values before a change, and the log becomes larger.',
          ...optional.map(comment),
        ]),
  ].join('\n');
}

/** A comment on one line: names of tables may have line breaks. */
function comment(text: string): string {
  return `-- ${text.replaceAll(/\p{Cc}/gu, ' ')}`;
}

interface RightsRow {
  role: string;
  level: string;
  may_replicate: string;
  schemas: string;
  tables: string;
}

/** The missing settings of the server and rights of the role. A snapshot reads the tables. */
async function missingRights(
  client: pg.Client,
  tables: readonly CatalogueTable[],
): Promise<{ server: string[]; grants: string[] }> {
  const { rows } = await client.query<RightsRow>(rightsStatement, [tables.map(({ oid }) => oid)]);
  const [row] = rows;
  if (row === undefined) return { server: [], grants: [] };
  const role = pg.escapeIdentifier(row.role);
  const schemas: string[] = JSON.parse(row.schemas);
  const hidden = new Set<string>(JSON.parse(row.tables));
  const unread = tables.filter(({ oid }) => hidden.has(oid)).map(quotedTable);
  return {
    server: [
      ...(row.level === 'logical' ? [] : ['alter system set wal_level = logical;']),
      ...(row.may_replicate === 't' ? [] : [`alter role ${role} replication;`]),
    ],
    grants: [
      ...(schemas.length === 0
        ? []
        : [`grant usage on schema ${schemas.map((schema) => pg.escapeIdentifier(schema)).join(', ')} to ${role};`]),
      ...(unread.length === 0 ? [] : [`grant select on ${unread.join(', ')} to ${role};`]),
    ],
  };
}

const rightsStatement = `
select r.rolname as role, current_setting('wal_level') as level, r.rolsuper or r.rolreplication as may_replicate,
       (select coalesce(jsonb_agg(distinct n.nspname), '[]')
          from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
         where c.oid = any ($1::oid[]) and not pg_catalog.has_schema_privilege(n.oid, 'usage'))::text as schemas,
       (select coalesce(jsonb_agg(c.oid::text), '[]') from pg_catalog.pg_class c
         where c.oid = any ($1::oid[]) and not pg_catalog.has_table_privilege(c.oid, 'select'))::text as tables
  from pg_catalog.pg_roles r where r.rolname = current_user`;
