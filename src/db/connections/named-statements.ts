import pg from 'pg';

type Callback = (error: Error | undefined, result: unknown) => void;

interface NamedStatement {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
}

/** What the driver knows of a statement besides. */
const otherOptions = ['rowMode', 'types', 'binary', 'rows', 'portal', 'queryMode', 'query_timeout'];

/**
 * Makes a connection take a named statement, asked by a callback, as it is. The driver would copy the description of the statement
 * with all properties one by one, which takes longer than anything else that it does before it writes.
 */
export function withoutCopies(client: pg.ClientBase): void {
  const { query } = client;
  Object.assign(client, {
    query: (...given: unknown[]) => {
      const [statement, callback] = given;
      if (!isNamed(statement) || !isCallback(callback)) return Reflect.apply(query, client, given);
      const { name, text, values } = statement;
      return Reflect.apply(query, client, [Object.assign(new pg.Query(text, values, callback), { name })]);
    },
  });
}

function isNamed(statement: unknown): statement is NamedStatement {
  if (typeof statement !== 'object' || statement === null || 'submit' in statement) return false;
  if (!('name' in statement && 'text' in statement && 'values' in statement)) return false;
  const { name, text, values } = statement;
  return (
    typeof name === 'string' &&
    typeof text === 'string' &&
    Array.isArray(values) &&
    !otherOptions.some((option) => option in statement)
  );
}

function isCallback(callback: unknown): callback is Callback {
  return typeof callback === 'function';
}
