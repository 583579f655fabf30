import type pg from 'pg';
import { talliedPageStatement } from './search/tally-store.ts';

/** No tenant has this name. Routines run their statements for it, although there is nothing to read. */
const noTenant = '';

/** Those of change_read. A routine without settings keeps the plans that it made under those of its first caller. */
export const settingsOfReads: Readonly<Record<string, string>> = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  jit: 'off',
  enable_sort: 'off',
  enable_incremental_sort: 'off',
};

const settings = Object.entries(settingsOfReads)
  .map(([name, value]) => `set_config('${name}', '${value}', true)`)
  .join(', ');

const everything = { since: 0, before: null, selections: [{ actors: null, kinds: null }] };

/** A call of change_count, one for each plan of reading entries. */
const count = (actors: string, kinds: string, split: string) =>
  `(select count(*) from change_count($1, '${actors}', '${kinds}', '{0}', 1, '${split}'))`;

/** Calls of the routines that read pages, histograms and facets, one for each of their plans. */
const calls = [
  count('{0}', '{0}', ''),
  count('{0}', '{1}', 'kind'),
  count('{1}', '{}', 'actor'),
  count('{1}', '{1}', 'kind'),
  `change_total($1, '{"{0}"}', '{"{0}"}', 0, null)`,
  `(select count(*) from change_newest($1, 1, '{"{0}"}', '{"{0}"}', 0, 1, 0, 1, 1))`,
  `(select count(*) from change_newest($1, 1, '{"{0}"}', '{"{1}"}', 0, 1, 0, 1, 1))`,
  `(select count(*) from change_newest($1, 1, '{"{1}"}', '{"{}"}', 0, 1, 0, 1, 1))`,
  `(select count(*) from change_newest($1, 1, '{"{0}"}', '{"{1,2}"}', 0, 1, 0, 1, 1))`,
  '(select entries from change_extent($1, 0, null))',
  `(select count(oldest) from change_oldest($1, '{0}', '{0}', 0, 1))`,
  `(select count(oldest) from change_oldest($1, '{1}', '{}', 0, 1))`,
  `(select count(oldest) from change_oldest($1, '{0}', '{1}', 0, 1))`,
  `(select count(oldest) from change_oldest($1, '{1}', '{1}', 0, 1))`,
  `(select count(*) from change_count_types($1, '{kind}', '{"{0}"}', '{"{1}"}', '{"{0}"}', '{1}', '{0}'))`,
  `(select count(value) from change_facet_values($1, '{kind}', '{"{0}"}', '{"{1}"}', '{"{0}"}', '{1}', '{0}', 'type', '{}', '{}', 1))`,
];

/** Statements after which a connection has the plans of most reads. They read nothing. */
export function warmUpStatements(): readonly pg.QueryConfig[] {
  const page = talliedPageStatement(noTenant, { now: 0, intervals: [everything], skip: 0, size: 1 }, [null, null, '']);
  // A statement for each call would take 3 ms more of the database for each connection, and 4 ms more of this process.
  return [page, { text: `select ${settings}, ${calls.join(' + ')} as entries`, values: [noTenant] }];
}
