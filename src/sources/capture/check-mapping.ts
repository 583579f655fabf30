import { type Source, withSource } from '../../postgres/source/source.ts';
import { type CatalogueTable, plainTable, readCatalogue } from '../../postgres/source/source-catalogue.ts';
import { rowRules } from '../../recording/mapping/apply-rules.ts';
import { columnsOfWho, type Mapping, type TableMapping, type WhoPart } from '../../recording/mapping/mapping.ts';
import { PostgresTypes } from '../../recording/mapping/postgres-types.ts';
import { soundsSecret } from '../../recording/mapping/secret-names.ts';
import { faultsOfTable } from './mapping-faults.ts';
import { defaultSlot } from './slot.ts';
import {
  fullIdentityStatement,
  publishGenerated,
  reasonAgainstFull,
  type TableFault,
  unwritableFaults,
} from './table-faults.ts';

/** How a table would be recorded. */
export interface TableReport extends Partial<Readonly<Record<WhoPart, string>>> {
  readonly table: string;
  readonly entity: string;
  /** `"primary key"` if neither the mapping nor a source names the columns. */
  readonly id: readonly string[] | 'primary key';
  readonly tenant: string;
  readonly name?: string;
  readonly correlationId?: string;
  readonly related?: readonly string[];
  readonly masked: readonly string[];
  readonly ignored: readonly string[];
  readonly truncate: string;
  readonly snapshot: boolean;
  /** The source's columns, with the form of their values in documents. */
  readonly columns?: Readonly<Record<string, string>>;
  /** Generated columns, which are not recorded. */
  readonly generated?: readonly string[];
  readonly partitions?: number;
  /** The previous values that the log has for an update. */
  readonly before?: 'whole row' | 'key';
  readonly missing: readonly TableFault[];
  /** Warnings about tables that can be recorded. */
  readonly advice: readonly TableFault[];
}

/** Reports on each table by the mapping alone. */
export function checkMapping(mapping: Mapping): TableReport[] {
  return [...mapping.tables.values()].map((table) => reportOf(mapping, table));
}

/** Reports on each table with the catalog of a source. `publication`: that of capture. */
export async function checkMappingAt(
  mapping: Mapping,
  source: Source,
  publication = defaultSlot,
): Promise<TableReport[]> {
  return await withSource(source, async (client) => {
    const catalogue = await readCatalogue(client, [...mapping.tables.keys()]);
    const types = new PostgresTypes(client);
    await types.load([...catalogue.values()].flatMap(({ columns }) => columns.map(({ type }) => type)));
    return [...mapping.tables.values()].map((table) => {
      const actual = catalogue.get(table.table);
      if (actual !== undefined) return withCatalogue(mapping, table, actual, { types, publication });
      return { ...reportOf(mapping, table), missing: [{ message: `the source has no table ${table.table}` }] };
    });
  });
}

function reportOf(mapping: Mapping, table: TableMapping): TableReport {
  return {
    table: table.table,
    entity: table.entity,
    id: table.id ?? 'primary key',
    tenant: tenantText(mapping),
    ...(table.name === undefined ? {} : { name: table.name }),
    ...Object.fromEntries(columnsOfWho(table.who)),
    ...(table.correlationId?.column === undefined ? {} : { correlationId: table.correlationId.column }),
    ...(table.related.length === 0
      ? {}
      : { related: table.related.map(({ entity, id }) => `${entity} by ${id.join(', ')}`) }),
    masked: table.rules.mask.map(({ text }) => text),
    ignored: table.rules.ignore.map(({ text }) => text),
    truncate: table.truncate,
    snapshot: table.snapshot,
    missing:
      mapping.tenant === undefined
        ? [{ message: 'the mapping names no tenant, so only the HTTP recorder can use it' }]
        : [],
    advice: secretWarnings(table, []).map((message) => ({ message })),
  };
}

function tenantText({ tenant, tenants }: Mapping): string {
  const translated = tenants.size === 0 ? '' : ', translated by "tenants"';
  if (tenant === undefined) return 'none';
  if (tenant.kind === 'value') return tenant.tenant;
  return (tenant.kind === 'schema' ? 'the schema of the table' : `the column ${tenant.column}`) + translated;
}

function withCatalogue(
  mapping: Mapping,
  table: TableMapping,
  actual: CatalogueTable,
  { types, publication }: { types: PostgresTypes; publication: string },
): TableReport {
  const report = reportOf(mapping, table);
  const { ignored } = rowRules(table);
  const recorded = actual.columns.filter(({ name, isGenerated }) => !isGenerated && !ignored.has(name));
  // For a publication made by an earlier version of capture.
  const unpublished = unwritableFaults(actual, [], publication).filter(
    ({ statement }) => statement === publishGenerated(publication),
  );
  return {
    ...report,
    id: table.id ?? actual.primaryKey,
    columns: Object.fromEntries(
      recorded.map(({ name, type }) => [name, table.json.has(name) ? 'json' : types.description(type)]),
    ),
    generated: actual.columns.filter(({ isGenerated }) => isGenerated).map(({ name }) => name),
    partitions: actual.partitions.length,
    before: actual.replicaIdentity === 'f' ? 'whole row' : 'key',
    missing: [...report.missing, ...faultsOfTable(mapping, table, actual, { publication }), ...unpublished],
    advice: [
      ...secretWarnings(table, actual.primaryKey).map((message) => ({ message })),
      ...identityAdvice(actual, publication),
    ],
  };
}

/** What replica identity full would add, if a table has only its key in the log and can have it. */
export function identityAdvice(table: CatalogueTable, publication: string): TableFault[] {
  if (table.replicaIdentity === 'f' || (table.kind !== 'r' && table.kind !== 'p')) return [];
  if ([table, ...table.partitions].some((relation) => reasonAgainstFull(relation, publication) !== undefined))
    return [];
  const effect =
    'has only the key of a row before a change. Capture compares an update with the document in the history, if that ' +
    'is complete; otherwise the entry has the new row. A delete has only the key, and a masked value counts as changed in each ' +
    'update. With replica identity full the log has all values before a change, and becomes larger';
  return [table, ...table.partitions].map((relation) => ({
    message: `${plainTable(relation)}: its log ${effect}`,
    group: { reason: `the log of these tables ${effect}`, item: plainTable(relation) },
    statement: fullIdentityStatement(relation, publication),
  }));
}

/**
 * Warnings about columns that sound secret although every entry shows them: ids, names and related ids cannot be
 * masked.
 */
function secretWarnings(table: TableMapping, primaryKey: readonly string[]): string[] {
  const shown: [use: string, columns: readonly (string | undefined)[]][] = [
    ['id', table.id ?? primaryKey],
    ['name', [table.name]],
    ...table.related.map(({ entity, id }): [string, readonly string[]] => [`related ${entity}`, id]),
  ];
  return shown.flatMap(([use, columns]) =>
    columns.flatMap((column) => {
      if (column === undefined || !soundsSecret(column)) return [];
      return [
        `${table.table}: its ${use} is the column ${column}, which seems to be a secret. Entries show its value, and a mask cannot cover it. ` +
          'Use another column, or leave the table out',
      ];
    }),
  );
}
