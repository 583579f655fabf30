import { randomUUID } from 'node:crypto';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { hasCode } from '../../postgres/write-once.ts';
import { type Author, type RecordedDocument, recordDocumentChange } from '../../recording/record-document-change.ts';
import { nameOfDocument, refuse } from './document.ts';
import { deleteInstance, findInstance, insertInstance, type StoredDocument, updateInstance } from './instance-store.ts';
import {
  patchedInstance,
  readSentInstance,
  type SentInstance,
  textForSchema,
  writtenInstance,
} from './instance-texts.ts';
import {
  alreadyThere,
  faultOfInstanceId,
  foreignKeyViolation,
  idDiffers,
  instanceNotFound,
  oldVersion,
  reservedInstanceId,
  typeNotFound,
} from './refusals.ts';
import { findType, type TypeRow } from './type-store.ts';
import type { Put, WriteContext } from './write-types.ts';

/** An instance as a client sent it, or as a patch makes it. */
interface Sent extends SentInstance {
  /** JSON text. */
  readonly text: string;
}

export interface InstanceWrites {
  /** Returns the id. If the document has none, Annals makes a random one. */
  create(author: Author, type: string, text: string): Promise<string>;
  put(author: Author, type: string, id: string, text: string): Promise<Put>;
  /** `patch` is the JSON text of a patch (RFC 6902). */
  patch(author: Author, type: string, id: string, patch: string): Promise<void>;
  remove(author: Author, type: string, id: string): Promise<void>;
}

/**
 * Writes instances (contract 9). One transaction has both the write and its change entry, so the database has both or
 * neither. Writers of one instance wait for each other. Annals refuses a write with an old version.
 */
export function createInstanceWrites(context: WriteContext): InstanceWrites {
  const { db, now } = context;

  async function typeOf(tenant: string, type: string): Promise<TypeRow> {
    const found = await findType(db, tenant, type);
    if (found === undefined) throw typeNotFound();
    return found;
  }

  async function insert(author: Author, type: TypeRow, id: string, { text }: Sent): Promise<boolean> {
    try {
      return await inTransaction(db, async (transaction) => {
        const at = now();
        const { name, ...written } = await writtenInstance(text, { id, version: 1, now: at }, undefined);
        if (!(await insertInstance(transaction, author.tenant, { type: type.id, id, version: 1, ...written })))
          return false;
        const { document } = written;
        await record(transaction, author, type, { entityId: id, at, name, after: document });
        return true;
      });
    } catch (error) {
      if (hasCode(error, foreignKeyViolation)) throw typeNotFound();
      throw error;
    }
  }

  async function replace(
    transaction: DatabaseTransaction,
    author: Author,
    type: TypeRow,
    { id, current, sent }: { id: string; current: StoredDocument; sent: Sent },
  ): Promise<void> {
    if (sent.version !== undefined && sent.version !== current.version) throw oldVersion();
    const at = now();
    const version = current.version + 1;
    const before = current.document;
    const { name, ...written } = await writtenInstance(sent.text, { id, version, now: at }, before);
    await updateInstance(transaction, author.tenant, { type: type.id, id, version, ...written });
    const { document } = written;
    await record(transaction, author, type, { entityId: id, at, name, before, after: document });
  }

  return {
    async create(author, typeId, text) {
      const sent = { text, ...(await readSentInstance(text)) };
      const id = sent.id ?? randomUUID();
      refuseId(id);
      const type = await typeOf(author.tenant, typeId);
      await checkAgainstSchema(context, type, sent, id);
      if (!(await insert(author, type, id, sent))) throw alreadyThere('instance');
      return id;
    },

    async put(author, typeId, id, text) {
      const sent = { text, ...(await readSentInstance(text)) };
      if (sent.id !== undefined && sent.id !== id) throw idDiffers();
      refuseId(id);
      const type = await typeOf(author.tenant, typeId);
      await checkAgainstSchema(context, type, sent, id);
      for (;;) {
        const replaced = await inTransaction(db, async (transaction) => {
          const current = await findInstance(transaction, author.tenant, { type: type.id, id }, { lock: true });
          if (current !== undefined) await replace(transaction, author, type, { id, current, sent });
          return current !== undefined;
        });
        if (replaced) return 'replaced';
        // The version of an instance that does not exist counts as an old one.
        if (sent.version !== undefined) throw oldVersion();
        // Another writer was faster, so this write replaces the instance.
        if (await insert(author, type, id, sent)) return 'created';
      }
    },

    async patch(author, typeId, id, patch) {
      if (id === reservedInstanceId) throw instanceNotFound();
      const type = await typeOf(author.tenant, typeId);
      for (;;) {
        // Patches and checks without a lock, because a schema may be slow. Annals stores exactly what it has checked.
        const current = await findInstance(db, author.tenant, { type: type.id, id });
        if (current === undefined) throw instanceNotFound();
        const text = await patchedInstance(current.document, patch);
        const sent = { text, ...(await readSentInstance(text)) };
        if (sent.id !== id) throw idDiffers();
        if (sent.version !== undefined && sent.version !== current.version) throw oldVersion();
        await checkAgainstSchema(context, type, sent, id);
        const patched = await inTransaction(db, async (transaction) => {
          const locked = await findInstance(transaction, author.tenant, { type: type.id, id }, { lock: true });
          if (locked?.document !== current.document) return false;
          await replace(transaction, author, type, { id, current, sent });
          return true;
        });
        if (patched) return;
      }
    },

    async remove(author, typeId, id) {
      const type = await typeOf(author.tenant, typeId);
      await inTransaction(db, async (transaction) => {
        const current = await findInstance(transaction, author.tenant, { type: type.id, id }, { lock: true });
        if (current === undefined) throw instanceNotFound();
        await deleteInstance(transaction, author.tenant, { type: type.id, id });
        const { document: before } = current;
        const name = await nameOfDocument(before);
        await record(transaction, author, type, { entityId: id, at: now(), name, before });
      });
    },
  };
}

async function record(
  transaction: DatabaseTransaction,
  author: Author,
  { id: entity, version, jsonSchema }: TypeRow,
  change: Omit<RecordedDocument, 'entity'>,
): Promise<void> {
  const schemaVersion = jsonSchema === null ? undefined : String(version);
  await recordDocumentChange(transaction, author, { ...change, entity, schemaVersion });
}

function refuseId(id: string): void {
  const fault = faultOfInstanceId(id);
  refuse(fault === undefined ? [] : [{ field: 'id', message: fault }]);
}

async function checkAgainstSchema(
  { schemas }: WriteContext,
  { jsonSchema }: TypeRow,
  { text }: Sent,
  id: string,
): Promise<void> {
  if (jsonSchema === null) return;
  await schemas.checkDocument(jsonSchema, await textForSchema(text, id, jsonSchema));
}
