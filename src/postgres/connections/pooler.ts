import { randomUUID } from 'node:crypto';
import type pg from 'pg';

/**
 * Whether the connections go through a pooler in transaction mode, for example pgbouncer (`?pooler=transaction`): each
 * transaction may use another server process, without state of a session.
 */
export function isBehindPooler(url: string): boolean {
  return new URL(url).searchParams.get('pooler') === 'transaction';
}

/** Makes a connection send unnamed statements, since another server process does not know the name. */
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

/** A unique comment for the start of a statement's text. */
export function newMark(): string {
  return `/* annals ${randomUUID()} */`;
}

/** The statement with its mark, by which pg_stat_activity finds it. */
export function marked(mark: string, statement: string | pg.QueryConfig): string | pg.QueryConfig {
  return typeof statement === 'string' ? `${mark} ${statement}` : { ...statement, text: `${mark} ${statement.text}` };
}

/** The URL with additional settings for its connections. A pooler in transaction mode refuses or drops them. */
export function withSettings(url: string, settings: Readonly<Record<string, string>>): string {
  const parsed = new URL(url);
  // The server splits the options at white space.
  const added = Object.entries(settings).map(([name, value]) => `-c ${name}=${value.replaceAll(/[\\\s]/g, '\\$&')}`);
  parsed.searchParams.set('options', [...parsed.searchParams.getAll('options').slice(0, 1), ...added].join(' '));
  return parsed.href;
}
