import pg from 'pg';
import { pino } from 'pino';
import { buildApp } from '../../src/app.ts';
import { createContext } from '../../src/context/context.ts';
import { readConfig } from '../../src/core/config/config.ts';

/** A statement, and the answer that Annals makes of it. */
export interface Answered {
  name?: string | undefined;
  text: string;
  values: unknown[];
  json: string;
}

/** The statement that Annals sends for each of these paths once its caches are warm. */
export async function statementsOf(
  paths: readonly string[],
  environment: Record<string, string>,
  token: string,
): Promise<Record<string, Answered>> {
  const config = readConfig(environment);
  const sent: pg.QueryConfig[] = [];
  const { query } = pg.Client.prototype;
  const noted = function (this: pg.Client, ...args: unknown[]) {
    sent.push(statementOf(args));
    return Reflect.apply(query, this, args);
  };
  // Before the first connection, which keeps the function it finds.
  Object.assign(pg.Client.prototype, { query: noted });
  const context = await createContext({
    config,
    databaseUrl: config.databaseUrl ?? '',
    secretKeys: config.secretKeys,
    overrides: { logger: pino({ level: 'silent' }) },
  });
  const app = await buildApp(context);
  try {
    const found: Record<string, Answered> = {};
    for (const url of paths) {
      const ask = () => app.inject({ url, headers: { authorization: `Bearer ${token}` } });
      await ask();
      await ask();
      sent.length = 0;
      const { body, statusCode } = await ask();
      if (statusCode !== 200) throw new Error(`${url} is answered with ${statusCode}: ${body}`);
      if (sent.length > 1) throw new Error(`${url} takes ${sent.length} statements`);
      const [statement] = sent;
      found[url] = { name: statement?.name, text: statement?.text ?? '', values: statement?.values ?? [], json: body };
    }
    return found;
  } finally {
    Object.assign(pg.Client.prototype, { query });
    await app.close();
    await context.close();
  }
}

/** A page of the history as a row for each entry, whatever Annals asks for. */
const pageAsRows = `select total, current, at, kind, actor, entity_id as "entityId", name, schema_version as "schemaVersion",
  case when octet_length(paths) + coalesce(octet_length(related), 0) <= 262144 then related end as related,
  case when octet_length(paths) + coalesce(octet_length(related), 0) <= 262144 then paths end as paths
  from change_read($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text::xid8, $11, $12)`;

/**
 * The same statements, but that of this page of the history answers a row for each entry and takes arrays as values.
 */
export function withRows(statements: Record<string, Answered>, page: string): Record<string, Answered> {
  const own = statements[page];
  if (own === undefined) throw new Error(`the statement of ${page} is not known`);
  const asRows = { ...own, name: 'page as rows', text: pageAsRows, values: own.values.map(arrayOrValue) };
  return { ...statements, [page]: asRows };
}

/** Annals sends the text of an array. Its elements are numbers, null, or arrays of one number. */
function arrayOrValue(value: unknown): unknown {
  if (typeof value !== 'string' || !value.startsWith('{')) return value;
  const elements = value.slice(1, -1).split(',');
  return elements.map((element) => (element === 'null' ? null : element.replaceAll('"', '')));
}

function statementOf([statement, values]: readonly unknown[]): pg.QueryConfig {
  if (typeof statement === 'string') return { text: statement, values: Array.isArray(values) ? values : [] };
  if (
    typeof statement === 'object' &&
    statement !== null &&
    'text' in statement &&
    typeof statement.text === 'string'
  ) {
    return { ...statement, text: statement.text };
  }
  throw new Error('something other than a statement was sent');
}
