import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { AnnalsError, invalidBody } from '../../core/errors.ts';
import { faultOfChosenId } from '../../http/chosen-id.ts';
import type { Author } from '../../http/credentials.ts';
import type { DocumentLists, DocumentRows, ListParameters, PageRequest } from '../../pagination/paginator.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { lockTenant } from '../../postgres/tenants/tenants.ts';
import { projectedJson } from '../../query/json-projection.ts';
import { parseQuery } from '../../query/parse.ts';
import { documentTable } from '../../recording/documents/document-table.ts';
import { metadataOf, ownDocuments, type Writing } from '../../recording/documents/own-documents.ts';
import { changelogDialect } from '../search/plan/dialect.ts';
import { faultOfRange, maxViews, type SavedView, type ViewBody } from './schemas.ts';

interface SavedViewTable {
  tenant: string;
  id: string;
  version: number;
  /** The view as JSON text, as Annals sends it. */
  document: string;
  /** The same as jsonb, for filters and sorting. */
  fields: string;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    saved_view: SavedViewTable;
  }
}

const viewTable = documentTable('saved_view', {});

function viewRows(tenant: string): DocumentRows {
  return { from: sql`saved_view`, where: sql`tenant = ${tenant}` };
}

/** How many views the tenant has, and the last place among them; 0 without any. */
async function readLastPlace(
  transaction: DatabaseTransaction,
  tenant: string,
): Promise<{ count: number; last: number }> {
  const { rows } = await sql<{ count: number; last: number }>`
    select count(*) as count, coalesce(max((fields ->> 'position')::double precision), 0) as last
      from saved_view where tenant = ${tenant}`.execute(transaction);
  const [places] = rows;
  if (places === undefined) throw new Error('an aggregate has no row');
  return places;
}

export type SavedViews = ReturnType<typeof createSavedViews>;

/**
 * Named queries of the change history, returned as JSON texts. Creations of a tenant's views wait for each other, so
 * that their number and last place are correct at the commit.
 */
export function createSavedViews(options: { db: Database; documents: DocumentLists; now: () => number }) {
  const { documents } = options;
  const views = ownDocuments(options, {
    noun: 'saved view',
    table: viewTable,
    entity: 'annals-view',
    async written({ body }: ViewWrite, writing, stored) {
      const before = stored && (JSON.parse(stored.document) as SavedView);
      const { position, isFull } = before ? { ...before, isFull: false } : await nextPlace(writing);
      const metadata = metadataOf(writing, before?.metadata.createdAt);
      const document = documentOf({ position, ...body, id: writing.id }, metadata);
      return {
        row: { document, fields: projectedJson(document) },
        name: body.name,
        async also() {
          if (isFull) throw new AnnalsError('validation_violation', `A tenant has at most ${maxViews} saved views.`);
        },
      };
    },
    nameOf: (document) => (JSON.parse(document) as SavedView).name,
  });

  return {
    find: views.find,
    remove: views.remove,

    list: (tenant: string, parameters: ListParameters, page: PageRequest) =>
      documents.page(viewRows(tenant), parameters, page),

    /** Returns the id: that of the body, or a random one. */
    async create(author: Author, body: ViewBody): Promise<string> {
      refuseFaults(body);
      const { id = randomUUID() } = body;
      await views.create(author, id, { body });
      return id;
    },

    async put(author: Author, id: string, body: ViewBody) {
      const fault = body.id === undefined || body.id === id ? faultOfChosenId(id) : 'must be that of the path';
      if (fault !== undefined) throw invalidBody({ field: 'id', message: fault });
      refuseFaults(body);
      return await views.put(author, id, { body, version: body.metadata?.version });
    },
  };
}

interface ViewWrite {
  readonly body: ViewBody;
  readonly version?: number | undefined;
}

/** The place after all views of the tenant, and whether it has as many as it may have. */
async function nextPlace({ transaction, author: { tenant } }: Writing): Promise<{ position: number; isFull: boolean }> {
  await lockTenant(transaction, tenant);
  const { count, last } = await readLastPlace(transaction, tenant);
  return { position: Math.floor(last) + 1, isFull: count >= maxViews };
}

function documentOf(
  { id, name, q, range = 'P30D', columns, position }: Omit<SavedView, 'metadata' | 'range'> & Pick<ViewBody, 'range'>,
  metadata: SavedView['metadata'],
): string {
  const view: SavedView = { id, name, q, range, ...(columns && { columns }), position, metadata };
  return JSON.stringify(view);
}

const time = '2026-06-01T00:00:00.000000000+00:00';
/** The range with the most characters and terms that a view can have. */
const maxRange = ` occurredAt:(>="${time}" AND <"${time}")`;

/** Throws validation_violation if the query, alone or with a range, or the range is invalid. */
function refuseFaults({ q, range }: ViewBody): void {
  parseQuery(q, changelogDialect);
  parseQuery(`${q}${maxRange}`, changelogDialect);
  const fault = range === undefined ? undefined : faultOfRange(range);
  if (fault !== undefined) throw invalidBody({ field: 'range', message: fault });
}
