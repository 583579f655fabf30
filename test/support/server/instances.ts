import { inTransaction } from '../../../src/postgres/transaction.ts';
import { projectedJson } from '../../../src/query/json-projection.ts';
import { documentText, readDocument, valuesOfDocument } from '../../../src/tenants/custom-entities/document.ts';
import { instanceTable, widthOf } from '../../../src/tenants/custom-entities/store.ts';
import type { ModelDocument } from '../oracle/document-evaluator.ts';
import { writeJson } from '../oracle/json-model.ts';
import type { TestServer } from './server.ts';

/** Replaces all instances of a type by these, without recording: a quick start for what reads them. */
export async function storeInstances(
  { context: { db } }: TestServer,
  { tenant, type }: { tenant: string; type: string },
  documents: readonly ModelDocument[],
): Promise<void> {
  await inTransaction(db, async (transaction) => {
    await transaction.deleteFrom('custom_instance').where('tenant', '=', tenant).where('type', '=', type).execute();
    for (const { id, content } of documents) {
      const state = { id, version: 1, createdAt: 0, modifiedAt: 0 };
      const input = readDocument(writeJson(content));
      const document = documentText(input, state);
      const row = { version: 1, document, fields: projectedJson(document), wide: widthOf(valuesOfDocument(input)) };
      await instanceTable(type).insert(transaction, tenant, id, row);
    }
  });
}

export interface PageSeen {
  readonly status: number;
  readonly ids: string[];
  readonly next: string | null;
  readonly prev: string | null;
  readonly total: string | null;
  readonly body: unknown;
}

export interface Listing {
  readonly tenant: string;
  readonly type: string;
  readonly token: string;
  /** Lists with GET, or searches with POST. */
  readonly by: 'list' | 'search';
  readonly q?: string;
}

/** One page of instances over HTTP. */
export async function readInstances(
  server: TestServer,
  { tenant, type, ...request }: Listing,
  paging: Paging,
  headers: Record<string, string> = {},
): Promise<PageSeen> {
  return await readPage(server, `/schema/${tenant}/custom-entities/${type}/instances`, { ...request, headers }, paging);
}

type Paging = Record<string, string | number>;

export interface PageCall {
  readonly token: string;
  /** Lists with GET, or searches with POST. */
  readonly by: 'list' | 'search';
  readonly q?: string;
  readonly headers?: Record<string, string>;
  /** See `CallOptions`. */
  readonly ofInventedRows?: boolean;
}

/** One page of a list, or of its search, at a path. `q` is a parameter of the list, and in the body of the search. */
export async function readPage(
  server: TestServer,
  path: string,
  { token, by, q, headers = {}, ofInventedRows = false }: PageCall,
  paging: Paging,
): Promise<PageSeen> {
  const parameters = new URLSearchParams(Object.entries(paging).map(([name, value]) => [name, String(value)]));
  if (by === 'list' && q !== undefined) parameters.set('q', q);
  const response = await server.call(`${path}${by === 'search' ? '/search' : ''}?${parameters}`, {
    token,
    ofInventedRows,
    headers,
    ...(by === 'search' && { json: { q } }),
  });
  const body: unknown = await response.json();
  return {
    status: response.status,
    ids: Array.isArray(body) ? body.map((item: { id: string }) => item.id) : [],
    next: response.headers.get('x-next-cursor'),
    prev: response.headers.get('x-prev-cursor'),
    total: response.headers.get('x-total-count'),
    body,
  };
}
