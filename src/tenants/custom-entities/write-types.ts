import { AnnalsError, hasCode } from '../../core/errors.ts';
import type { Author } from '../../http/credentials.ts';
import type { Database } from '../../postgres/database.ts';
import { ownDocuments } from '../../recording/documents/own-documents.ts';
import { nameOfDocument } from './document.ts';
import { foreignKeyViolation, typeNoun } from './refusals.ts';
import type { SchemaChecker } from './schema-checker.ts';
import { typeTable } from './store.ts';
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

export interface OwnTypes {
  find(tenant: string, id: string): Promise<string>;
  /** Returns the id. */
  create(author: Author, text: string): Promise<string>;
  put(author: Author, id: string, text: string): Promise<Put>;
  /** Throws validation_violation if the type has instances. */
  remove(author: Author, id: string): Promise<void>;
}

/** Reads and writes types by id (contract 9), recording changes as for instances. */
export function createOwnTypes(context: WriteContext): OwnTypes {
  const types = ownDocuments(context, {
    noun: typeNoun,
    table: typeTable,
    // Lower case, so it is never a type's id.
    entity: 'custom-entity',
    async written(sent: SentType, writing, before) {
      const { name, ...row } = await writtenType(
        sent,
        { version: writing.version, now: writing.now },
        before?.document,
      );
      return { name, row };
    },
    nameOf: nameOfDocument,
  });

  async function readType(text: string, pathId?: string): Promise<SentType> {
    const sent = await readSentType(text, pathId);
    if (sent.jsonSchema !== null) await context.schemas.checkSchema(sent.jsonSchema);
    return sent;
  }

  return {
    find: types.find,

    async create(author, text) {
      const sent = await readType(text);
      await types.create(author, sent.id, sent);
      return sent.id;
    },

    async put(author, id, text) {
      return await types.put(author, id, await readType(text, id));
    },

    async remove(author, id) {
      try {
        await types.remove(author, id);
      } catch (error) {
        if (!hasCode(error, foreignKeyViolation)) throw error;
        throw new AnnalsError('validation_violation', 'A type that has instances cannot be deleted.');
      }
    },
  };
}
