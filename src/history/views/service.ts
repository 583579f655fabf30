import { randomUUID } from 'node:crypto';
import { AnnalsError, invalidBody } from '../../core/errors.ts';
import type { AskedOfList, DocumentLists } from '../../pagination/document-lists.ts';
import type { Page, PageWanted } from '../../pagination/paginator.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { parseQuery } from '../../query/parse.ts';
import { type Author, recordDocumentChange } from '../../recording/record-document-change.ts';
import { changelogDialect } from '../ask/dialect.ts';
import { faultOfRange } from './range.ts';
import { faultOfViewId, maxViews, type SavedView, type ViewBody } from './schemas.ts';
import { deleteView, findView, insertView, lockViews, readPlaces, updateView, viewRows } from './store.ts';

/** Queries of the change history that a tenant keeps by name. They go out as JSON texts. */
export interface SavedViews {
  find(tenant: string, id: string): Promise<string>;
  list(tenant: string, asked: AskedOfList, wanted: PageWanted): Promise<Page>;
  /** Returns the id. Without one in the body Annals makes a random one. */
  create(author: Author, body: ViewBody): Promise<string>;
  put(author: Author, id: string, body: ViewBody): Promise<'created' | 'replaced'>;
  remove(author: Author, id: string): Promise<void>;
}

/** The name of views in the change history. */
const entity = 'annals-view';

/**
 * Saved views. A write and its change entry are one transaction. Writers of one tenant wait for each other, so that the number of
 * its views and the last place among them are still correct when the write commits.
 */
export function createSavedViews(options: { db: Database; documents: DocumentLists; now: () => number }): SavedViews {
  const { db, documents, now } = options;

  async function insert(transaction: DatabaseTransaction, author: Author, id: string, body: ViewBody): Promise<void> {
    const { tenant } = author;
    const { count, last } = await readPlaces(transaction, tenant);
    if (count >= maxViews)
      throw new AnnalsError('validation_violation', `A tenant has at most ${maxViews} saved views.`);
    const at = now();
    const { position = Math.floor(last) + 1 } = body;
    const after = documentOf({ ...body, id, position }, { version: 1, createdAt: at, modifiedAt: at });
    await insertView(transaction, tenant, { id, version: 1, document: after });
    await recordDocumentChange(transaction, author, { entity, entityId: id, at, name: body.name, after });
  }

  return {
    async find(tenant, id) {
      const found = await findView(db, tenant, refuseUnknownId(id));
      if (found === undefined) throw viewNotFound();
      return found.document;
    },

    list: (tenant, asked, wanted) => documents.page(viewRows(tenant), asked, wanted),

    async create(author, body) {
      refuseFaults(body);
      const { id = randomUUID() } = body;
      await inTransaction(db, async (transaction) => {
        await lockViews(transaction, author.tenant);
        if ((await findView(transaction, author.tenant, id)) !== undefined) throw alreadyThere();
        await insert(transaction, author, id, body);
      });
      return id;
    },

    async put(author, id, body) {
      const { tenant } = author;
      const fault = body.id === undefined || body.id === id ? faultOfViewId(id) : 'must be that of the path';
      if (fault !== undefined) throw invalidBody({ field: 'id', message: fault });
      refuseFaults(body);
      return await inTransaction(db, async (transaction) => {
        await lockViews(transaction, tenant);
        const current = await findView(transaction, tenant, id);
        const sentVersion = body.metadata?.version;
        // The version of a view that does not exist counts as an old one.
        if (sentVersion !== undefined && sentVersion !== current?.version) throw oldVersion();
        if (current === undefined) {
          await insert(transaction, author, id, body);
          return 'created';
        }
        const at = now();
        const version = current.version + 1;
        const before = JSON.parse(current.document) as SavedView;
        const createdAt = Date.parse(before.metadata.createdAt);
        const { position = before.position } = body;
        const state = { version, createdAt, modifiedAt: Math.max(at, createdAt) };
        const after = documentOf({ ...body, id, position }, state);
        await updateView(transaction, tenant, { id, version, document: after });
        const change = { entity, entityId: id, at, name: body.name, before: current.document, after };
        await recordDocumentChange(transaction, author, change);
        return 'replaced';
      });
    },

    async remove(author, id) {
      const { tenant } = author;
      refuseUnknownId(id);
      await inTransaction(db, async (transaction) => {
        await lockViews(transaction, tenant);
        const current = await findView(transaction, tenant, id);
        if (current === undefined) throw viewNotFound();
        await deleteView(transaction, tenant, id);
        const { document: before } = current;
        const { name } = JSON.parse(before) as SavedView;
        await recordDocumentChange(transaction, author, { entity, entityId: id, at: now(), name, before });
      });
    },
  };
}

interface ViewState {
  readonly version: number;
  /** Milliseconds since 1970, as the other. */
  readonly createdAt: number;
  readonly modifiedAt: number;
}

/** The JSON text of a view, as Annals stores it and sends it. */
function documentOf(
  { id, name, q, range = 'P30D', columns, position }: ViewBody & { readonly id: string; readonly position: number },
  { version, createdAt, modifiedAt }: ViewState,
): string {
  const metadata = {
    version,
    createdAt: new Date(createdAt).toISOString(),
    modifiedAt: new Date(modifiedAt).toISOString(),
  };
  const view: SavedView = { id, name, q, range, ...(columns && { columns }), position, metadata };
  return JSON.stringify(view);
}

const time = '2026-06-01T00:00:00.000000000+00:00';
/** A range that takes as many characters and terms of a query as any range can. */
const maxRange = ` occurredAt:(>="${time}" AND <"${time}")`;

/** Throws validation_violation where the query, or the query with a range, is not valid, or the range is not. */
function refuseFaults({ q, range }: ViewBody): void {
  parseQuery(q, changelogDialect);
  parseQuery(`${q}${maxRange}`, changelogDialect);
  const fault = range === undefined ? undefined : faultOfRange(range);
  if (fault !== undefined) throw invalidBody({ field: 'range', message: fault });
}

/** No view has an id that cannot be given. PostgreSQL could not compare some of them. */
function refuseUnknownId(id: string): string {
  if (faultOfViewId(id) !== undefined) throw viewNotFound();
  return id;
}

function viewNotFound(): AnnalsError {
  return new AnnalsError('resource_not_found', 'There is no such saved view.');
}

function alreadyThere(): AnnalsError {
  return new AnnalsError('conflict_resource', 'There is a saved view with this id already.');
}

function oldVersion(): AnnalsError {
  return new AnnalsError('conflict_resource', 'The view has changed: its metadata.version is a different one.');
}
