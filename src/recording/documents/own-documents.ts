import { AnnalsError } from '../../core/errors.ts';
import type { Author } from '../../http/credentials.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { type RecordedDocument, recordDocumentChange } from '../record-document-change.ts';
import type { DocumentRow, DocumentTable, StoredDocument } from './document-table.ts';

/** A write of a document. */
export interface Writing {
  readonly transaction: DatabaseTransaction;
  readonly author: Author;
  readonly id: string;
  readonly version: number;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** The result of a write, to be stored and recorded. */
export interface WrittenDocument<Own> extends Pick<RecordedDocument, 'name' | 'replacedSecrets'> {
  readonly row: Omit<DocumentRow, 'version'> & Own;
  /** Additional writes of the transaction, after the row is written. */
  readonly also?: (() => Promise<void>) | undefined;
}

/** How documents of one kind are stored. `Sent`: the client's input, with the version that it expects. */
interface DocumentKind<Sent, Own> extends Pick<RecordedDocument, 'entity' | 'schemaVersion'> {
  /** In messages: `agent`. */
  readonly noun: string;
  readonly table: DocumentTable<Own>;
  /** `before`: the document to replace. */
  written(
    sent: Sent,
    writing: Writing,
    before: (StoredDocument & Own) | undefined,
  ): WrittenDocument<Own> | Promise<WrittenDocument<Own>>;
  /** The name that change entries show of a stored document. */
  nameOf(document: string): string | undefined | Promise<string | undefined>;
}

/** Documents that record their own changes: a write and its change entry are one transaction. Writes are serialized. */
export interface OwnDocuments<Sent, Own> {
  /** The document as JSON text. Throws resource_not_found. */
  find(tenant: string, id: string): Promise<string>;
  /** Throws conflict_resource if the id exists. */
  create(author: Author, id: string, sent: Sent): Promise<void>;
  /** Throws conflict_resource for a stale version, as `replace` does. */
  put(author: Author, id: string, sent: Sent): Promise<'created' | 'replaced'>;
  /** `update` gets the locked document. Returns false if it returns undefined. Throws resource_not_found. */
  replace(
    author: Author,
    id: string,
    update: (before: StoredDocument & Own) => Sent | undefined | Promise<Sent | undefined>,
  ): Promise<boolean>;
  /** Throws resource_not_found. */
  remove(author: Author, id: string): Promise<void>;
}

export function ownDocuments<Sent extends { readonly version?: number | undefined }, Own>(
  { db, now }: { readonly db: Database; readonly now: () => number },
  { noun, table, entity, schemaVersion, written, nameOf }: DocumentKind<Sent, Own>,
): OwnDocuments<Sent, Own> {
  type Change = Pick<RecordedDocument, 'before' | 'after' | 'name' | 'replacedSecrets'>;
  const record = ({ transaction, author, id, now: at }: Omit<Writing, 'version'>, change: Change) =>
    recordDocumentChange(transaction, author, { entity, schemaVersion, entityId: id, at, ...change });

  async function insert(author: Author, id: string, sent: Sent): Promise<boolean> {
    return await inTransaction(db, async (transaction) => {
      const writing = { transaction, author, id, version: 1, now: now() };
      const { row, also, ...change } = await written(sent, writing, undefined);
      if (!(await table.insert(transaction, author.tenant, id, { ...row, version: 1 }))) return false;
      await also?.();
      await record(writing, { ...change, after: row.document });
      return true;
    });
  }

  /** Returns undefined if the document does not exist. */
  async function replace(
    author: Author,
    id: string,
    update: (before: StoredDocument & Own) => Sent | undefined | Promise<Sent | undefined>,
  ): Promise<boolean | undefined> {
    return await inTransaction(db, async (transaction) => {
      const before = await table.find(transaction, author.tenant, id, { lock: true });
      if (before === undefined) return undefined;
      const sent = await update(before);
      if (sent === undefined) return false;
      if (sent.version !== undefined && sent.version !== before.version) throw oldVersion();
      const writing = { transaction, author, id, version: before.version + 1, now: now() };
      const { row, also, ...change } = await written(sent, writing, before);
      await table.update(transaction, author.tenant, id, { ...row, version: writing.version });
      await also?.();
      await record(writing, { ...change, before: before.document, after: row.document });
      return true;
    });
  }

  return {
    async find(tenant, id) {
      const document = await table.find(db, tenant, id);
      if (document === undefined) throw notFound(noun);
      return document.document;
    },

    async create(author, id, sent) {
      if (await insert(author, id, sent)) return;
      throw new AnnalsError('conflict_resource', `There is ${withArticle(noun)} with this id already.`);
    },

    async put(author, id, sent) {
      for (;;) {
        if ((await replace(author, id, () => sent)) === true) return 'replaced';
        // Any version of a document that does not exist is stale.
        if (sent.version !== undefined) throw oldVersion();
        // A concurrent write may have created the document: then retries as a replace.
        if (await insert(author, id, sent)) return 'created';
      }
    },

    async replace(author, id, update) {
      const replaced = await replace(author, id, update);
      if (replaced === undefined) throw notFound(noun);
      return replaced;
    },

    async remove(author, id) {
      const removal = async (transaction: DatabaseTransaction) => {
        const before = await table.find(transaction, author.tenant, id, { lock: true });
        if (before === undefined) throw notFound(noun);
        await table.remove(transaction, author.tenant, id);
        const { document } = before;
        await record({ transaction, author, id, now: now() }, { before: document, name: await nameOf(document) });
      };
      // Deletes the rows that refer to the document too, which can deadlock with their writers.
      await inTransaction(db, removal, { retries: 3 });
    },
  };
}

/** The metadata of a document. `modifiedAt` is never before `createdAt`. */
export function metadataOf(
  { version, now }: Pick<Writing, 'version' | 'now'>,
  createdAt = new Date(now).toISOString(),
): { version: number; createdAt: string; modifiedAt: string } {
  return { version, createdAt, modifiedAt: new Date(Math.max(now, Date.parse(createdAt))).toISOString() };
}

const maxIdBytes = 255;

/** The fault of a document id, or undefined. It must fit into an index entry and a cursor. */
export function faultOfDocumentId(id: string): string | undefined {
  if (id === '') return 'must not be empty';
  if (/[\p{Cc}\p{Surrogate}]/u.test(id)) return 'must not have control characters';
  if (Buffer.byteLength(id) > maxIdBytes) return `must have at most ${maxIdBytes} bytes of UTF-8`;
  return undefined;
}

export function notFound(noun: string): AnnalsError {
  return new AnnalsError('resource_not_found', `There is no such ${noun}.`);
}

/** Optimistic locking: the document has changed since the client read it (contract 9). */
export function oldVersion(): AnnalsError {
  return new AnnalsError('conflict_resource', 'The document has changed: its metadata.version is a different one.');
}

function withArticle(noun: string): string {
  return `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun}`;
}
