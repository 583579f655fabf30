import { elementsOf, memberOf, stringOf } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import type { Mapping, TableMapping } from '../../recording/mapping/mapping.ts';
import type { OutboxRow } from './outbox-rows.ts';

/** Columns that the trigger has masked because they came after the SQL of the outbox ran. */
export function laterColumns({ source, document }: Pick<OutboxRow, 'source' | 'document'>): string[] {
  const masked = source === null || document === null ? undefined : memberOf(parseJson(document), 'masked');
  return masked === undefined ? [] : elementsOf(masked).flatMap((column) => stringOf(column) ?? []);
}

const prepared = new WeakMap<Mapping, Map<string, Mapping>>();

/** The mapping with a mask for these columns of a table. Their values are not known, so nothing else is taken from them either. */
export function withLaterColumns(mapping: Mapping, source: string, columns: readonly string[]): Mapping {
  const table = mapping.tables.get(source);
  if (columns.length === 0 || table === undefined) return mapping;
  const known = prepared.get(mapping) ?? new Map<string, Mapping>();
  prepared.set(mapping, known);
  const key = JSON.stringify([source, columns]);
  const found = known.get(key) ?? {
    ...mapping,
    tables: new Map([...mapping.tables, [source, maskedTable(table, columns)]]),
  };
  known.set(key, found);
  return found;
}

function maskedTable(table: TableMapping, columns: readonly string[]): TableMapping {
  const isKnown = (column: string | undefined) => column !== undefined && !columns.includes(column);
  const masks = columns.map((column) => ({ text: column, keys: [column] }));
  const { name, actor, schemaVersion, related, rules } = table;
  return {
    ...table,
    name: isKnown(name) ? name : undefined,
    actor: isKnown(actor) ? actor : undefined,
    schemaVersion: schemaVersion?.kind === 'column' && !isKnown(schemaVersion.column) ? undefined : schemaVersion,
    related: related.filter(({ id }) => id.every(isKnown)),
    rules: { ...rules, mask: [...rules.mask, ...masks] },
  };
}
