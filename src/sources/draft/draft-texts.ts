import type { MappingFile } from '../../recording/mapping/mapping-schema.ts';
import type { MappingDraft } from './draft-mapping.ts';

/** The file as readable JSON for further editing: one member per line. */
export function textOfMapping(file: MappingFile): string {
  return textOf(file, 0, 3);
}

function textOf(value: unknown, depth: number, levels: number): string {
  if (Array.isArray(value)) return `[${value.map((item) => textOf(item, depth, depth)).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, member]) => {
    // What has one short member stands on one line with it.
    const isFlat = key === 'tenant';
    return `${JSON.stringify(key)}: ${textOf(member, depth + 1, isFlat ? 0 : levels)}`;
  });
  if (members.length === 0) return '{}';
  if (depth >= levels) return `{ ${members.join(', ')} }`;
  const indent = '  '.repeat(depth + 1);
  return `{\n${indent}${members.join(`,\n${indent}`)}\n${indent.slice(2)}}`;
}

/** Lines that say what was guessed and left out. */
export function linesOfDraft(draft: MappingDraft, { tenantIsGuessed }: { tenantIsGuessed: boolean }): string[] {
  const { file, leftOut, masked, ignored, named, relatedByName, unrelated, json, tenantColumn } = draft;
  const count = Object.keys(file.tables ?? {}).length;
  const all = count + [...leftOut.values()].flat().length;
  const tenant = file.tenant?.value ?? '';
  return [
    `annals: ${count} of ${all} tables are in the mapping. Most of it is guessed from names: read it before you use it.`,
    ...section('Tenant', [
      ...(tenantIsGuessed
        ? [`${tenant}: the name of the database. Write the tenant that the changes belong to (--tenant T)`]
        : []),
      ...(tenantColumn === undefined
        ? []
        : [
            `${tenantColumn.tables} of ${count} tables have ${tenantColumn.column}. If it names your customers, and each is a tenant: ` +
              `"tenant": {"column": ${JSON.stringify(tenantColumn.column)}}, with these tables alone`,
          ]),
    ]),
    ...section(
      'Left out',
      [...leftOut].map(([reason, tables]) => `${reason}: ${tables.join(', ')}`),
    ),
    ...section('Masked, because the name sounds like a secret', byColumn(masked)),
    ...section('JSON that is recorded as it is: mask what is secret in it', byColumn(json)),
    ...section('Ignored, because it only says when a row was touched', byColumn(ignored)),
    ...section('Names of documents', byColumn(named)),
    ...section('Related by the name of a column, without a foreign key', relatedByName),
    ...section('Foreign keys that are not related', unrelated),
  ];
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`${title}:`, ...lines.map((line) => `  ${line}`)];
}

/** Columns as `table.column`, those with one name together: `updated_at of 3 tables`. */
function byColumn(columns: readonly string[]): string[] {
  const groups = Map.groupBy(columns, (column) => column.slice(column.lastIndexOf('.') + 1));
  return [...groups].map(([name, all]) => (all.length > 3 ? `${name} of ${all.length} tables` : all.join(', ')));
}
