import type { DatabaseTransaction } from '../db/database.ts';
import { inTransaction } from '../db/transaction.ts';
import { AnnalsError, type ErrorDetail, maxDetails } from '../errors.ts';
import { elementsOf, kindOf, memberOf, membersOf } from '../json/members.ts';
import { parseJson } from '../json/parse.ts';
import type { JsonNode } from '../json/tape.ts';
import { compactText, sourceText } from '../json/text.ts';
import { type ChangeType, changeOfDocuments } from '../recording/change.ts';
import type { Author } from '../recording/record-document-change.ts';
import {
  createdAtOf,
  type DocumentInput,
  displayName,
  documentText,
  isMapByLanguage,
  projectionOf,
  readDocument,
  refuse,
} from './document.ts';
import { alreadyThere, idDiffers, isForeignKeyViolation, oldVersion, typeIdPattern, typeNotFound } from './refusals.ts';
import { deleteType, insertType, lockType, updateType } from './type-store.ts';
import type { Put, WriteContext } from './write-context.ts';

export interface TypeWrites {
  /** Returns the id. */
  create(author: Author, text: string): Promise<string>;
  put(author: Author, id: string, text: string): Promise<Put>;
  /** Throws validation_violation if the type has instances. */
  remove(author: Author, id: string): Promise<void>;
}

/** The name of types in the change history. It has small letters, so no type can have it as its id. */
const entityOfTypes = 'custom-entity';
const largestSchema = 64 * 1024;
const deepestSchema = 32;

/** Writes types (contract 9). Annals records these changes as it does for instances. */
export function createTypeWrites({ db, now, schemas, record }: WriteContext): TypeWrites {
  async function recordType(
    transaction: DatabaseTransaction,
    { tenant, actor }: Author,
    change: { type: ChangeType; id: string; at: number; before?: string; after?: string },
  ): Promise<void> {
    const { id, ...rest } = change;
    const name = displayName(memberOf(parseJson(change.after ?? change.before ?? '{}'), 'name'));
    const recorded = changeOfDocuments({ ...rest, entity: entityOfTypes, entityId: id, actor, name });
    if (recorded !== 'unchanged') await record(transaction, tenant, recorded, change.at);
  }

  async function insert(author: Author, id: string, input: DocumentInput): Promise<boolean> {
    return await inTransaction(db, async (transaction) => {
      const at = now();
      const document = documentText(input, { id, version: 1, createdAt: at, modifiedAt: at });
      const row = { id, version: 1, document, jsonSchema: schemaOf(input), fields: projectionOf(document) };
      if (!(await insertType(transaction, author.tenant, row))) return false;
      await recordType(transaction, author, { type: 'create', id, at, after: document });
      return true;
    });
  }

  async function readType(text: string, pathId?: string): Promise<{ id: string; input: DocumentInput }> {
    const input = readDocument(text);
    if (pathId !== undefined && input.id !== undefined && input.id !== pathId) throw idDiffers();
    const id = pathId ?? input.id ?? '';
    refuse(faultsOf(id, input));
    const schema = schemaOf(input);
    if (schema !== null) await schemas.checkSchema(schema);
    return { id, input };
  }

  return {
    async create(author, text) {
      const { id, input } = await readType(text);
      if (!(await insert(author, id, input))) throw alreadyThere('type');
      return id;
    },

    async put(author, pathId, text) {
      const { id, input } = await readType(text, pathId);
      for (;;) {
        const replaced = await inTransaction(db, async (transaction) => {
          const current = await lockType(transaction, author.tenant, id);
          if (current === undefined) return false;
          if (input.version !== undefined && input.version !== current.version) throw oldVersion();
          const at = now();
          const createdAt = createdAtOf(current.document);
          const version = current.version + 1;
          const document = documentText(input, { id, version, createdAt, modifiedAt: Math.max(at, createdAt) });
          const row = { id, version, document, jsonSchema: schemaOf(input), fields: projectionOf(document) };
          await updateType(transaction, author.tenant, row);
          await recordType(transaction, author, { type: 'update', id, at, before: current.document, after: document });
          return true;
        });
        if (replaced) return 'replaced';
        if (input.version !== undefined) throw oldVersion();
        if (await insert(author, id, input)) return 'created';
      }
    },

    async remove(author, id) {
      try {
        await inTransaction(db, async (transaction) => {
          const current = await lockType(transaction, author.tenant, id);
          if (current === undefined) throw typeNotFound();
          await deleteType(transaction, author.tenant, id);
          await recordType(transaction, author, { type: 'delete', id, at: now(), before: current.document });
        });
      } catch (error) {
        if (!isForeignKeyViolation(error)) throw error;
        throw new AnnalsError('validation_violation', 'A type that has instances cannot be deleted.');
      }
    },
  };
}

function faultsOf(id: string, { name, rest }: DocumentInput): ErrorDetail[] {
  const details: ErrorDetail[] = [];
  if (!typeIdPattern.test(id)) {
    details.push({ field: 'id', message: 'must be capital letters, digits and _, a letter first, 63 at most' });
  }
  if (name === undefined || !isMapByLanguage(name) || membersOf(name).size === 0) {
    details.push({ field: 'name', message: 'must be a map by language, such as {"en": "Warranty claim"}' });
  }
  const schema = schemaNodeOf(rest);
  if (schema !== undefined) {
    const fault = faultOfSchema(schema);
    if (fault !== undefined) details.push({ field: 'jsonSchema', message: fault });
  }
  for (const [key] of rest) {
    if (details.length === maxDetails) break;
    if (key !== 'jsonSchema') details.push({ field: key, message: 'is no field of a type' });
  }
  return details;
}

function schemaNodeOf(rest: DocumentInput['rest']): JsonNode | undefined {
  return rest.find(([key]) => key === 'jsonSchema')?.[1];
}

function faultOfSchema(schema: Parameters<typeof sourceText>[0]): string | undefined {
  if (!['object', 'true', 'false'].includes(kindOf(schema))) return 'must be a JSON Schema: an object or a boolean';
  if (Buffer.byteLength(sourceText(schema)) > largestSchema) return `must have at most ${largestSchema} bytes`;
  return levelsOf(schema) > deepestSchema ? `must have at most ${deepestSchema} levels` : undefined;
}

function levelsOf(value: Parameters<typeof sourceText>[0]): number {
  const kind = kindOf(value);
  if (kind !== 'object' && kind !== 'array') return 0;
  const inner = kind === 'object' ? [...membersOf(value).values()] : elementsOf(value);
  return 1 + inner.reduce((levels, item) => Math.max(levels, levelsOf(item)), 0);
}

function schemaOf({ rest }: DocumentInput): string | null {
  const schema = schemaNodeOf(rest);
  return schema === undefined ? null : compactText(schema);
}
