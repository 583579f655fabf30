import { parseQuery } from '../query/parse.ts';
import type { StopSignal } from '../stop-signal.ts';
import { changelogDialect } from './dialect.ts';
import type { FindPage } from './find-page.ts';
import { historyText } from './read/view.ts';

/** A query of the change history as the JSON text that its operation answers; throws AnnalsError for a wrong query. */
export type AnswerQuery = (tenant: string, asked: AskedQuery) => Promise<string>;

interface AskedQuery {
  q: string;
  page: number;
  size: number;
  /** Given when nobody waits for the answer any more: the query ends in the database too. */
  signal?: StopSignal | undefined;
}

/** For rooms that ask the change history in the name of a client that may; context.ts hands it to them. */
export function createAnswerQuery(findPage: FindPage): AnswerQuery {
  return async (tenant, { q, page, size, signal }) => {
    const query = parseQuery(q, changelogDialect);
    return historyText(await findPage(tenant, query, { skip: (page - 1) * size, size, signal }), { page, size });
  };
}
