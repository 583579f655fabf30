import { sql } from 'kysely';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { projectedJson } from '../../../src/query/json-projection.ts';
import { documentText, readDocument } from '../../../src/tenants/custom-entities/document.ts';
import type { ModelDocument } from '../oracle/document-evaluator.ts';
import { writeJson } from '../oracle/json-model.ts';
import { type PageSeen, readPage } from './instances.ts';
import type { TestServer } from './server.ts';

/** A list with its search, of whatever documents: all of them are paged alike (contract 10). */
export interface Listed {
  readonly name: string;
  readonly table: string;
  /** Columns other than tenant, id, document and fields, which are the same for all documents of a test. */
  readonly columns: Readonly<Record<string, unknown>>;
  path(tenant: string): string;
}

export const instancesOfThing: Listed = {
  name: 'instances',
  table: 'custom_instance',
  columns: { type: 'THING', version: 1 },
  path: (tenant) => `/schema/${tenant}/custom-entities/THING/instances`,
};

export const aiListings: readonly Listed[] = [
  {
    name: 'request logs',
    table: 'agent_request_log',
    columns: {},
    path: (tenant) => `/ai-service/${tenant}/agentic/logs/requests`,
  },
  {
    name: 'session logs',
    table: 'agent_session_log',
    columns: { duration: 0, prompt_tokens: 0, completion_tokens: 0 },
    path: (tenant) => `/ai-service/${tenant}/agentic/logs/sessions`,
  },
  {
    name: 'jobs',
    table: 'job',
    columns: { type: 'EXPORT', status: 'success', input: '{}' },
    path: (tenant) => `/ai-service/${tenant}/jobs`,
  },
  {
    name: 'agents',
    table: 'agent',
    columns: { version: 1, enabled: true },
    path: (tenant) => `/ai-service/${tenant}/agentic/agents`,
  },
  { name: 'saved views', table: 'saved_view', columns: { version: 1 }, path: (tenant) => `/changelog/${tenant}/views` },
];

/** Makes what a tenant needs before it can have such documents. */
export async function prepareListed(server: TestServer, listed: Listed, tenant: string, token: string): Promise<void> {
  if (listed.table !== 'custom_instance') return;
  await server.call(`/schema/${tenant}/custom-entities`, { token, json: { id: 'THING', name: { en: 'Thing' } } });
}

/**
 * Replaces all documents of the list by these, whatever they are, without recording: a quick start for what reads them.
 */
export async function storeListed(
  { context: { db } }: TestServer,
  { table, columns }: Listed,
  tenant: string,
  documents: readonly ModelDocument[],
): Promise<void> {
  await inTransaction(db, async (transaction) => {
    const target = sql.table(table);
    await sql`delete from ${target} where tenant = ${tenant}`.execute(transaction);
    if (documents.length === 0) return;
    const names = ['tenant', 'id', 'document', 'fields', ...Object.keys(columns)].map((name) => sql.ref(name));
    const rows = documents.map(({ id, content }) => {
      const state = { id, version: 1, createdAt: 0, modifiedAt: 0 };
      const document = documentText(readDocument(writeJson(content)), state);
      const values = [tenant, id, document, sql`${projectedJson(document)}::jsonb`, ...Object.values(columns)];
      return sql`(${sql.join(values)})`;
    });
    await sql`insert into ${target} (${sql.join(names)}) values ${sql.join(rows)}`.execute(transaction);
  });
}

export interface Asked {
  readonly tenant: string;
  readonly token: string;
  /** Lists with GET, or searches with POST. */
  readonly by: 'list' | 'search';
  readonly q?: string;
}

/** One page over HTTP. */
export async function readListed(
  server: TestServer,
  listed: Listed,
  { tenant, ...request }: Asked,
  paging: Record<string, string | number>,
  headers: Record<string, string> = {},
): Promise<PageSeen> {
  return await readPage(server, listed.path(tenant), { ...request, headers, ofInventedRows: true }, paging);
}
