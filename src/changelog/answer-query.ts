import { parseQuery } from '../query/parse.ts';
import { changelogDialect } from './dialect.ts';
import type { FindPage } from './find-page.ts';
import { historyText } from './view.ts';

/** A query of the change history as the JSON text that its operation answers; throws AnnalsError for a wrong query. */
export type AnswerQuery = (tenant: string, asked: { q: string; page: number; size: number }) => Promise<string>;

/** For rooms that ask the change history in the name of a client that may; context.ts hands it to them. */
export function createAnswerQuery(findPage: FindPage): AnswerQuery {
  return async (tenant, { q, page, size }) => {
    const query = parseQuery(q, changelogDialect);
    return historyText(await findPage(tenant, query, { skip: (page - 1) * size, size }), { page, size });
  };
}
