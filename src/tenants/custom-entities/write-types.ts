import { AnnalsError } from '../../core/errors.ts';
import type { Database } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { hasCode } from '../../postgres/write-once.ts';
import { type Author, recordDocumentChange } from '../../recording/record-document-change.ts';
import { nameOfDocument } from './document.ts';
import { alreadyThere, foreignKeyViolation, oldVersion, typeNotFound } from './refusals.ts';
import type { SchemaChecker } from './schema-checker.ts';
import { deleteType, findType, insertType, updateType } from './type-store.ts';
import { readSentType, type SentType, writtenType } from './type-texts.ts';

/** What the functions that write types and instances need. */
export interface WriteContext {
  readonly db: Database;
  readonly schemas: Pick<SchemaChecker, 'checkSchema' | 'checkDocument'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** The outcome of a PUT. */
export type Put = 'created' | 'replaced';

export interface TypeWrites {
  /** Returns the id. */
  create(author: Author, text: string): Promise<string>;
  put(author: Author, id: string, text: string): Promise<Put>;
  /** Throws validation_violation if the type has instances. */
  remove(author: Author, id: string): Promise<void>;
}

/** The name of types in the change history. It has small letters, so no type can have it as its id. */
const entity = 'custom-entity';

/** Writes types (contract 9). Annals records these changes as it does for instances. */
export function createTypeWrites({ db, now, schemas }: WriteContext): TypeWrites {
  async function insert(author: Author, sent: SentType): Promise<boolean> {
    return await inTransaction(db, async (transaction) => {
      const at = now();
      const { name, ...row } = await writtenType(sent, { version: 1, now: at }, undefined);
      if (!(await insertType(transaction, author.tenant, row))) return false;
      await recordDocumentChange(transaction, author, { entity, entityId: sent.id, at, name, after: row.document });
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
          const current = await findType(transaction, author.tenant, id, { lock: true });
          if (current === undefined) return false;
          if (sentVersion !== undefined && sentVersion !== current.version) throw oldVersion();
          const at = now();
          const version = current.version + 1;
          const before = current.document;
          const { name, ...row } = await writtenType(sent, { version, now: at }, before);
          await updateType(transaction, author.tenant, row);
          const change = { entity, entityId: id, at, name, before, after: row.document };
          await recordDocumentChange(transaction, author, change);
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
          const current = await findType(transaction, author.tenant, id, { lock: true });
          if (current === undefined) throw typeNotFound();
          await deleteType(transaction, author.tenant, id);
          const { document: before } = current;
          const name = await nameOfDocument(before);
          await recordDocumentChange(transaction, author, { entity, entityId: id, at: now(), name, before });
        });
      } catch (error) {
        if (!hasCode(error, foreignKeyViolation)) throw error;
        throw new AnnalsError('validation_violation', 'A type that has instances cannot be deleted.');
      }
    },
  };
}
