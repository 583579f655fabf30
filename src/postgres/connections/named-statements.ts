import pg from 'pg';
import { arePlain, type Callback, PreparedQuery, PreparedStatement } from './prepared-query.ts';

interface Statement {
  readonly name?: string | undefined;
  readonly text: string;
  readonly values: unknown[];
}

/** What the driver knows of a statement besides. */
const otherOptions = ['rowMode', 'types', 'binary', 'rows', 'portal', 'queryMode', 'query_timeout'];

/**
 * Makes a connection take a statement with values, asked by a callback, as it is. The driver would copy its description
 * with all properties one by one. A statement with a name that selects goes out as a PreparedQuery from its second execution on.
 */
export function withoutCopies(client: pg.ClientBase): void {
  const { query } = client;
  const prepared = new Map<string, PreparedStatement>();

  function queryOf({ name, text, values }: Statement, callback: Callback): pg.Submittable {
    if (name === undefined) return new pg.Query(text, values, callback);
    const known = prepared.get(name);
    // The driver refuses another text for the name.
    if (known?.text === text && arePlain(values)) return new PreparedQuery(known, values, callback);
    const learn = (error: Error | null | undefined, result: pg.QueryResult) => {
      if (!error && result.command === 'SELECT') {
        prepared.set(name, new PreparedStatement({ name, text }, result.fields, client.getTypeParser.bind(client)));
      }
      callback(error, result);
    };
    return Object.assign(new pg.Query(text, values, known === undefined ? learn : callback), { name });
  }

  Object.assign(client, {
    query: (...given: unknown[]) => {
      const [statement, callback] = given;
      if (!isStatement(statement) || !isCallback(callback)) return Reflect.apply(query, client, given);
      return Reflect.apply(query, client, [queryOf(statement, callback)]);
    },
  });
}

function isStatement(statement: unknown): statement is Statement {
  if (typeof statement !== 'object' || statement === null || 'submit' in statement) return false;
  if (!('text' in statement && 'values' in statement)) return false;
  const { text, values } = statement;
  const name = 'name' in statement ? statement.name : undefined;
  return (
    (name === undefined || typeof name === 'string') &&
    typeof text === 'string' &&
    Array.isArray(values) &&
    !otherOptions.some((option) => option in statement)
  );
}

function isCallback(callback: unknown): callback is Callback {
  return typeof callback === 'function';
}
