import type { Dictionary } from '../names/dictionary.ts';
import type { EntryRow } from './store.ts';

/** The result of one statement that reads a page. */
export type PageRead =
  | { readonly kind: 'page'; readonly total: number; readonly entries: EntryRow[] }
  /** The statement's snapshot has names that the dictionary lacks. */
  | { readonly kind: 'outdated names' }
  /** One statement cannot answer, or should not: the plan is large, or an entry has much text. */
  | { readonly kind: 'several statements' };

const outdatedNames: PageRead = { kind: 'outdated names' };
export const severalStatements: PageRead = { kind: 'several statements' };

/** Maximum bytes of an entry's text. Annals reads a page with a longer entry in several statements. */
const maxTextBytes = 256 * 1024;
const fits = `octet_length(paths) + coalesce(octet_length(related), 0) <= ${maxTextBytes}`;

/** The columns of the database functions that answer a page. */
export const pageColumns = `total, current, at, kind, actor, entity_id as "entityId", name, schema_version as "schemaVersion",
  case when ${fits} then related end as related, case when ${fits} then paths end as paths`;

/** A row of a page. A row without a kind has only the total. */
export interface PageRow extends Omit<EntryRow, 'type' | 'entity' | 'actor' | 'paths'> {
  /** Null where the statement gave up. */
  total: number | null;
  /** Whether the snapshot has no names that the dictionary lacks. */
  current: boolean;
  kind: number | null;
  actor: number;
  paths: string | null;
}

/** Converts these rows to a page: names replace the numbers of kinds and actors. */
export function pageOf(rows: readonly PageRow[], dictionary: Dictionary): PageRead {
  const [head] = rows;
  if (head === undefined) throw new Error('a page came without its total');
  if (!head.current) return outdatedNames;
  if (head.total === null) return severalStatements;
  const entries: EntryRow[] = [];
  for (const { at, kind, actor, entityId, name, schemaVersion, related, paths } of rows) {
    if (kind === null) continue;
    const kindNames = dictionary.kindOf.get(kind);
    const actorName = dictionary.actorOf.get(actor)?.name;
    if (kindNames === undefined || actorName === undefined) return outdatedNames;
    if (paths === null) return severalStatements;
    const { type, entity } = kindNames;
    entries.push({ at, type, entity, entityId, name, schemaVersion, actor: actorName, related, paths });
  }
  return { kind: 'page', total: head.total, entries };
}
