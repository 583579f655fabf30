import { randomUUID } from 'node:crypto';
import { TimeSlice } from '../concurrency/time-slice.ts';
import type { DatabaseTransaction } from '../db/database.ts';
import { inTransaction } from '../db/transaction.ts';
import { kindOf, memberOf, objectText } from '../json/members.ts';
import { parseJson } from '../json/parse.ts';
import { refuseLargeDocument } from '../json/size.ts';
import { type ChangeType, changeOfDocuments } from '../recording/change.ts';
import type { Author } from '../recording/record-document-change.ts';
import {
  createdAtOf,
  type DocumentInput,
  type DocumentState,
  displayName,
  documentText,
  isMapByLanguage,
  projectionOf,
  readDocument,
  refuse,
  valuesOfDocument,
} from './document.ts';
import {
  deleteInstance,
  findInstance,
  insertInstance,
  lockInstance,
  type StoredDocument,
  updateInstance,
} from './instance-store.ts';
import { patchDocument } from './patch-document.ts';
import {
  alreadyThere,
  faultOfInstanceId,
  idDiffers,
  instanceNotFound,
  isForeignKeyViolation,
  oldVersion,
  reservedInstanceId,
  typeNotFound,
} from './refusals.ts';
import { findType, type TypeRow } from './type-store.ts';
import type { Put, WriteContext } from './write-context.ts';

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

  async function record(
    transaction: DatabaseTransaction,
    { tenant, actor }: Author,
    type: TypeRow,
    change: { type: ChangeType; id: string; at: number; before?: string; after?: string },
  ): Promise<void> {
    const slice = new TimeSlice();
    const before = change.before === undefined ? undefined : parseJson(change.before);
    if (slice.isDue) await slice.rest();
    const after = change.after === undefined ? undefined : parseJson(change.after);
    if (slice.isDue) await slice.rest();
    const shown = after ?? before;
    const recorded = changeOfDocuments({
      type: change.type,
      entity: type.id,
      entityId: change.id,
      at: change.at,
      actor,
      name: shown && displayName(memberOf(shown, 'name')),
      schemaVersion: type.jsonSchema === null ? undefined : String(type.version),
      before,
      after,
    });
    if (recorded !== 'unchanged') await context.record(transaction, tenant, recorded, change.at);
  }

  async function insert(author: Author, type: TypeRow, id: string, input: DocumentInput): Promise<boolean> {
    try {
      return await inTransaction(db, async (transaction) => {
        const at = now();
        const { document, fields } = await instanceTexts(input, { id, version: 1, createdAt: at, modifiedAt: at });
        if (!(await insertInstance(transaction, author.tenant, { type: type.id, id, version: 1, document, fields }))) {
          return false;
        }
        await record(transaction, author, type, { type: 'create', id, at, after: document });
        return true;
      });
    } catch (error) {
      if (isForeignKeyViolation(error)) throw typeNotFound();
      throw error;
    }
  }

  async function replace(
    transaction: DatabaseTransaction,
    author: Author,
    type: TypeRow,
    { id, current, input }: { id: string; current: StoredDocument; input: DocumentInput },
  ): Promise<void> {
    if (input.version !== undefined && input.version !== current.version) throw oldVersion();
    const at = now();
    const version = current.version + 1;
    const createdAt = createdAtOf(current.document);
    const modifiedAt = Math.max(at, createdAt);
    const { document, fields } = await instanceTexts(input, { id, version, createdAt, modifiedAt });
    await updateInstance(transaction, author.tenant, { type: type.id, id, version, document, fields });
    await record(transaction, author, type, { type: 'update', id, at, before: current.document, after: document });
  }

  return {
    async create(author, typeId, text) {
      const input = readInstance(text);
      const id = input.id ?? randomUUID();
      refuseId(id);
      const type = await typeOf(author.tenant, typeId);
      await checkAgainstSchema(context, type, input, id);
      if (!(await insert(author, type, id, input))) throw alreadyThere('instance');
      return id;
    },

    async put(author, typeId, id, text) {
      const input = readInstance(text);
      if (input.id !== undefined && input.id !== id) throw idDiffers();
      refuseId(id);
      const type = await typeOf(author.tenant, typeId);
      await checkAgainstSchema(context, type, input, id);
      for (;;) {
        const replaced = await inTransaction(db, async (transaction) => {
          const current = await lockInstance(transaction, author.tenant, { type: type.id, id });
          if (current !== undefined) await replace(transaction, author, type, { id, current, input });
          return current !== undefined;
        });
        if (replaced) return 'replaced';
        // The version of an instance that does not exist counts as an old one.
        if (input.version !== undefined) throw oldVersion();
        // Another writer was faster, so this write replaces the instance.
        if (await insert(author, type, id, input)) return 'created';
      }
    },

    async patch(author, typeId, id, patch) {
      if (id === reservedInstanceId) throw instanceNotFound();
      const type = await typeOf(author.tenant, typeId);
      for (;;) {
        // Patches and checks without a lock, because a schema may be slow. Annals stores exactly what it has checked.
        const current = await findInstance(db, author.tenant, { type: type.id, id });
        if (current === undefined) throw instanceNotFound();
        const slice = new TimeSlice();
        const patchedText = patchDocument(current.document, patch);
        if (slice.isDue) await slice.rest();
        const input = readInstance(patchedText);
        if (input.id !== id) throw idDiffers();
        if (input.version !== undefined && input.version !== current.version) throw oldVersion();
        await checkAgainstSchema(context, type, input, id);
        const patched = await inTransaction(db, async (transaction) => {
          const locked = await lockInstance(transaction, author.tenant, { type: type.id, id });
          if (locked?.document !== current.document) return false;
          await replace(transaction, author, type, { id, current, input });
          return true;
        });
        if (patched) return;
      }
    },

    async remove(author, typeId, id) {
      const type = await typeOf(author.tenant, typeId);
      await inTransaction(db, async (transaction) => {
        const current = await lockInstance(transaction, author.tenant, { type: type.id, id });
        if (current === undefined) throw instanceNotFound();
        await deleteInstance(transaction, author.tenant, { type: type.id, id });
        await record(transaction, author, type, { type: 'delete', id, at: now(), before: current.document });
      });
    },
  };
}

function readInstance(text: string): DocumentInput {
  const input = readDocument(text);
  const { name } = input;
  const named = name === undefined || kindOf(name) === 'string' || isMapByLanguage(name);
  refuse(named ? [] : [{ field: 'name', message: 'must be a string, or a map by language' }]);
  return input;
}

/** The instance as Annals stores it. A large one is made in time slices. Throws payload_too_large (contract 11). */
async function instanceTexts(
  input: DocumentInput,
  state: DocumentState,
): Promise<{ document: string; fields: string }> {
  const slice = new TimeSlice();
  const document = documentText(input, state);
  if (slice.isDue) await slice.rest();
  refuseLargeDocument('An instance', { bytes: Buffer.byteLength(document), values: valuesOfDocument(input) });
  if (slice.isDue) await slice.rest();
  return { document, fields: projectionOf(document) };
}

function refuseId(id: string): void {
  const fault = faultOfInstanceId(id);
  refuse(fault === undefined ? [] : [{ field: 'id', message: fault }]);
}

/**
 * The schema sees the instance's own fields. Every instance has id, name and metadata; the schema sees them only if it
 * mentions them. So a schema that forbids additional fields need not list these three.
 */
async function checkAgainstSchema(
  { schemas }: WriteContext,
  { jsonSchema }: TypeRow,
  input: DocumentInput,
  id: string,
): Promise<void> {
  if (jsonSchema === null) return;
  const spokenOf = fieldsSpokenOf(jsonSchema);
  const document = objectText([
    ...(spokenOf.has('id') ? [['id', JSON.stringify(id)] as const] : []),
    ...(spokenOf.has('name') && input.name !== undefined ? [['name', input.name] as const] : []),
    ...(spokenOf.has('metadata') ? [['metadata', objectText(input.metadata)] as const] : []),
    ...input.rest,
  ]);
  await schemas.checkDocument(jsonSchema, document);
}

function fieldsSpokenOf(jsonSchema: string): Set<string> {
  const schema: { properties?: object; required?: unknown } | boolean = JSON.parse(jsonSchema);
  if (typeof schema === 'boolean') return new Set();
  const required = Array.isArray(schema.required) ? schema.required : [];
  return new Set([...Object.keys(schema.properties ?? {}), ...required]);
}
