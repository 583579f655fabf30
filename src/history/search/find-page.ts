import type { Query } from '../../query/ast.ts';
import type { PageOfEntries } from '../entries/entry-store-new.ts';
import { DictionaryCache } from './names/dictionary-cache.ts';
import type { AskedPage, PageQuery } from './page-query.ts';
import { readInSingleStatement } from './single-statement.ts';
import { readInSnapshot } from './snapshot-page.ts';
import { queryAt, type Reading } from './snapshots.ts';

/**
 * Finds a page of the entries that satisfy a query: `size` entries after the first `skip`, newest first. Also finds the
 * total. Page and total come from one snapshot of the database. Rejects with an AnnalsError, validation_violation, when a
 * regular expression exceeds its budget or the page has too much text. Rejects with the current work's reason when that
 * work is aborted.
 *
 * @example
 * const query = parseQuery('entity:order type:delete', changelogDialect);
 * const { total, entries } = await findPage('acme', query, { skip: 0, size: 20 });
 */
export type FindPage = (tenant: string, query: Query, page: AskedPage) => Promise<PageOfEntries>;

export interface HistoryOptions extends Reading {
  now: () => number;
  /** Names that other parts of the process share; default: a cache of its own. */
  dictionaries?: DictionaryCache;
}

// New names are rare. If so many reads in a row find new names, Annals reads the names in the snapshot that answers.
const maxAttempts = 3;

export function createFindPage(options: HistoryOptions): FindPage {
  const { now, dictionaries = new DictionaryCache(options.pool), ...reading } = options;

  return async (
    tenant,
    asked,
    { skip, size, inPieces = false, withContext = false, withIdentity = false, restriction },
  ) => {
    const of = queryAt(tenant, asked, now(), restriction);
    const page: PageQuery = { ...of, skip, size, inPieces, withContext, withIdentity };
    let dictionary = dictionaries.known(tenant) ?? (await dictionaries.get(tenant));
    // Few callers ask for circumstances, identities or pieces, so the statement that answers alone does not return them.
    if (withContext || withIdentity || inPieces === 'always') return await readInSnapshot(reading, page, dictionary);
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const read = await readInSingleStatement(reading, page, dictionary);
      if (read.kind === 'page') return { way: read.way, total: read.total, entries: read.entries };
      if (read.kind === 'several statements') break;
      dictionary = await dictionaries.get(tenant, dictionary);
    }
    return await readInSnapshot(reading, page, dictionary);
  };
}
