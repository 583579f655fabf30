import { randomUUID } from 'node:crypto';
import type pg from 'pg';

/**
 * Whether the connections go through a pooler in transaction mode, for example pgbouncer: DATABASE_URL ends with
 * `?pooler=transaction`. Then each transaction may use another server process, and nothing of a session remains.
 */
export function isBehindPooler(url: string): boolean {
  return new URL(url).searchParams.get('pooler') === 'transaction';
}

/** Makes a connection send statements without names: another server process does not know the statement of a name. */
export function withoutNames(client: pg.PoolClient): void {
  const { query } = client;
  Object.assign(client, {
    query: (statement: unknown, ...others: unknown[]) => Reflect.apply(query, client, [unnamed(statement), ...others]),
  });
}

function unnamed(statement: unknown): unknown {
  const hasName = typeof statement === 'object' && statement !== null && 'text' in statement && 'name' in statement;
  return hasName ? { ...statement, name: undefined } : statement;
}

/** A comment at the start of a statement's text. It tells this statement from all others. */
export function newMark(): string {
  return `/* annals ${randomUUID()} */`;
}

/** The statement with its mark, which finds it in pg_stat_activity. */
export function marked(mark: string, statement: string | pg.QueryConfig): string | pg.QueryConfig {
  return typeof statement === 'string' ? `${mark} ${statement}` : { ...statement, text: `${mark} ${statement.text}` };
}

/** The URL with settings that a connection brings along, after those that it has. A pooler in transaction mode refuses or drops them. */
export function withSettings(url: string, settings: Readonly<Record<string, string>>): string {
  const parsed = new URL(url);
  const given = parsed.searchParams.get('options');
  // The server splits the options at white space.
  const ours = Object.entries(settings).map(([name, value]) => `-c ${name}=${value.replaceAll(/[\\\s]/g, '\\$&')}`);
  parsed.searchParams.set('options', [...(given === null ? [] : [given]), ...ours].join(' '));
  return parsed.href;
}
