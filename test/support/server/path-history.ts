import { expect } from 'vitest';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { matches } from '../oracle/query-evaluator.ts';
import { changeOf } from './history.ts';
import { startTestServer, type TestServer } from './server.ts';

/** A server whose tenants have entries with chosen paths, and queries that an evaluator answers too. */
export interface PathHistory {
  server: TestServer;
  now: number;
  /** Records changes of a tenant, a second apart, the first one the newest; each has its place as id. */
  record(tenant: string, changes: readonly (Partial<Change> & { paths: string })[]): Promise<void>;
  /** Expects that each query finds the entries that the evaluator finds. Returns how many each found. */
  agree(tenant: string, queries: readonly string[]): Promise<number[]>;
  ask<Body>(
    tenant: string,
    operation: string,
    parameters: Record<string, string>,
  ): Promise<{ status: number; body: Body }>;
  close(): Promise<void>;
}

export async function startPathHistory(): Promise<PathHistory> {
  const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
  const server = await startTestServer({ clock: { now: () => now } });
  const tokens = new Map<string, string>();
  const recorded = new Map<string, Change[]>();
  /** What the evaluator found: tests ask the same queries of the same entries several times. */
  const evaluated = new Map<string, Change[]>();

  function evaluate(tenant: string, q: string): Change[] {
    const query = parseQuery(q, changelogDialect);
    return (recorded.get(tenant) ?? []).filter((entry) => matches(query, entry, now));
  }

  async function ask<Body>(tenant: string, operation: string, parameters: Record<string, string>) {
    const token = tokens.get(tenant) ?? (await server.token(tenant));
    tokens.set(tenant, token);
    const path = `/changelog/${tenant}/${operation}?${new URLSearchParams(parameters)}`;
    const response = await server.call(path, { token });
    return { status: response.status, body: (await response.json()) as Body };
  }

  return {
    server,
    now,
    ask,
    async record(tenant, changes) {
      await server.createTenant(tenant);
      const known = recorded.get(tenant) ?? [];
      const news = changes.map((change, place) =>
        changeOf({ at: now - (known.length + place) * 1_000, entityId: String(known.length + place), ...change }),
      );
      const outcomes = await createRecorder(server.context.db, tenant, () => now)(news);
      expect(outcomes).toEqual(news.map(() => 'recorded'));
      recorded.set(tenant, [...known, ...news]);
      evaluated.clear();
    },
    async agree(tenant, queries) {
      const found: number[] = [];
      for (const q of queries) {
        const { status, body } = await ask<{ items: { entityId: string }[]; totalElements: number }>(
          tenant,
          'changelogs',
          { q, size: '100' },
        );
        const expected = evaluated.get(`${tenant} ${q}`) ?? evaluate(tenant, q);
        evaluated.set(`${tenant} ${q}`, expected);
        expect({ q, status, total: body.totalElements, ids: body.items?.map(({ entityId }) => entityId) }).toEqual({
          q,
          status: 200,
          total: expected.length,
          ids: expected.slice(0, 100).map(({ entityId }) => entityId),
        });
        found.push(body.totalElements);
      }
      return found;
    },
    close: () => server.close(),
  };
}

/** The JSON text of paths with these members; `__proto__` and equal names are members like all others. */
export function pathsOf(members: Record<string, string> | readonly (readonly [string, string])[]): string {
  const entries: readonly (readonly [string, string])[] = Array.isArray(members) ? members : Object.entries(members);
  return `{${entries.map(([path, sides]) => `${JSON.stringify(path)}:${sides}`).join(',')}}`;
}
