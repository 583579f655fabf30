import { AnnalsError } from '../../core/errors.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { preparedChange } from '../../recording/prepared-change.ts';
import type { Author } from '../../recording/record-document-change.ts';
import { nameOfDocument } from './document.ts';
import { alreadyThere, isForeignKeyViolation, oldVersion, typeNotFound } from './refusals.ts';
import { deleteType, insertType, lockType, updateType } from './type-store.ts';
import { readSentType, type SentType, writtenType } from './type-texts.ts';
import type { Put, WriteContext, WrittenChange } from './write-context.ts';

export interface TypeWrites {
  /** Returns the id. */
  create(author: Author, text: string): Promise<string>;
  put(author: Author, id: string, text: string): Promise<Put>;
  /** Throws validation_violation if the type has instances. */
  remove(author: Author, id: string): Promise<void>;
}

/** The name of types in the change history. It has small letters, so no type can have it as its id. */
const entityOfTypes = 'custom-entity';

/** Writes types (contract 9). Annals records these changes as it does for instances. */
export function createTypeWrites({ db, now, schemas, record }: WriteContext): TypeWrites {
  async function recordType(
    transaction: DatabaseTransaction,
    { tenant, actor }: Author,
    change: WrittenChange,
  ): Promise<void> {
    const recorded = await preparedChange({ ...change, entity: entityOfTypes, actor });
    if (recorded !== 'unchanged') await record(transaction, tenant, recorded, change.at);
  }

  async function insert(author: Author, sent: SentType): Promise<boolean> {
    return await inTransaction(db, async (transaction) => {
      const at = now();
      const { name, ...row } = await writtenType(sent, { version: 1, now: at }, undefined);
      if (!(await insertType(transaction, author.tenant, row))) return false;
      await recordType(transaction, author, { type: 'create', entityId: sent.id, at, name, after: row.document });
      return true;
    });
  }

  async function readType(text: string, pathId?: string): Promise<SentType> {
    const sent = await readSentType(text, pathId);
    if (sent.jsonSchema !== null) await schemas.checkSchema(sent.jsonSchema);
    return sent;
  }

  return {
    async create(author, text) {
      const sent = await readType(text);
      const { id } = sent;
      if (!(await insert(author, sent))) throw alreadyThere('type');
      return id;
    },

    async put(author, pathId, text) {
      const sent = await readType(text, pathId);
      const { id, version: sentVersion } = sent;
      for (;;) {
        const replaced = await inTransaction(db, async (transaction) => {
          const current = await lockType(transaction, author.tenant, id);
          if (current === undefined) return false;
          if (sentVersion !== undefined && sentVersion !== current.version) throw oldVersion();
          const at = now();
          const version = current.version + 1;
          const before = current.document;
          const { name, ...row } = await writtenType(sent, { version, now: at }, before);
          await updateType(transaction, author.tenant, row);
          await recordType(transaction, author, {
            type: 'update',
            entityId: id,
            at,
            name,
            before,
            after: row.document,
          });
          return true;
        });
        if (replaced) return 'replaced';
        if (sentVersion !== undefined) throw oldVersion();
        if (await insert(author, sent)) return 'created';
      }
    },

    async remove(author, id) {
      try {
        await inTransaction(db, async (transaction) => {
          const current = await lockType(transaction, author.tenant, id);
          if (current === undefined) throw typeNotFound();
          await deleteType(transaction, author.tenant, id);
          const { document: before } = current;
          const name = await nameOfDocument(before);
          await recordType(transaction, author, { type: 'delete', entityId: id, at: now(), name, before });
        });
      } catch (error) {
        if (!isForeignKeyViolation(error)) throw error;
        throw new AnnalsError('validation_violation', 'A type that has instances cannot be deleted.');
      }
    },
  };
}
