import type pg from 'pg';
import { currentTrace, type Tracer } from '../../core/trace.ts';

/** Characters of a statement that its span has. Values are parameters, so no statement has any. */
const maxText = 1_000;

/** Makes a span of each statement that a connection carries out for a trace. */
export function traceStatements(client: pg.ClientBase, tracer: Tracer): void {
  const query: (...args: unknown[]) => unknown = client.query.bind(client);
  Object.assign(client, {
    query(...args: unknown[]) {
      const parent = currentTrace();
      const text = textOf(args[0]);
      // A statement that drives itself, COPY for example, has no end that could be seen here.
      if (parent === undefined || text === undefined) return query(...args);
      const operation = /^\s*(\w+)/.exec(text)?.[1]?.toUpperCase() ?? 'SQL';
      const span = tracer.begin(operation, {
        kind: 'client',
        parent,
        attributes: {
          'db.system.name': 'postgresql',
          'db.operation.name': operation,
          'db.query.text': text.slice(0, maxText),
        },
      });
      const callback = args.at(-1);
      if (typeof callback === 'function') {
        const callBack = (...results: unknown[]) => {
          span.end({ hasFailed: results[0] instanceof Error });
          callback(...results);
        };
        args[args.length - 1] = callBack;
        return query(...args);
      }
      const result = query(...args);
      if (!(result instanceof Promise)) {
        span.end();
        return result;
      }
      return result.then(
        (rows: unknown) => {
          span.end();
          return rows;
        },
        (error: unknown) => {
          span.end({ hasFailed: true });
          throw error;
        },
      );
    },
  });
}

function textOf(statement: unknown): string | undefined {
  if (typeof statement === 'string') return statement;
  if (typeof statement !== 'object' || statement === null || 'submit' in statement || !('text' in statement)) return;
  return typeof statement.text === 'string' ? statement.text : undefined;
}
