import type { Statements } from '../../postgres/statements.ts';
import type { Dictionary } from './names/dictionary.ts';
import { type PageRead, type PageRow, pageOf } from './page-rows.ts';

/** The conditions of a query for paths; null means any. */
export interface PathsPage {
  now: number;
  since: number;
  before: number | null;
  kinds: readonly number[] | null;
  actors: readonly number[] | null;
  /** The entity types of the kinds. */
  entities: readonly string[] | null;
  /** Patterns of LIKE for the names of the paths. */
  patterns: readonly string[];
  skip: number;
  size: number;
  /** With more entries the query is for several statements; null: with any number it is for one. */
  maxTotal: number | null;
  dictionary: Dictionary;
}

/** Reads a page and its total in one statement, if numbers tell which entries have the paths. */
export async function readPathsPage(statements: Statements, tenant: string, page: PathsPage): Promise<PageRead> {
  const { now, since, before, kinds, actors, entities, patterns, skip, size, maxTotal, dictionary } = page;
  const { since: namesSince, recent, lineage } = dictionary;
  const { rows } = await statements.query<PageRow>({
    name: 'paths page',
    text: 'select page from change_page_paths($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::text::xid8, $13, $14)',
    values: [
      ...[tenant, now, since, before, kinds, actors, entities, patterns],
      ...[skip, size, maxTotal, namesSince, recent, lineage],
    ],
  });
  return pageOf(rows, dictionary, 'search');
}
