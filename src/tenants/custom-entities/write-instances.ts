import { randomUUID } from 'node:crypto';
import { hasCode } from '../../core/errors.ts';
import { threaded } from '../../core/fairness/threads.ts';
import { refuseLargeDocument } from '../../core/json/measure.ts';
import { kindOf, objectText } from '../../core/json/members.ts';
import type { Author } from '../../http/credentials.ts';
import { projectedJson } from '../../query/json-projection.ts';
import type { StoredDocument } from '../../recording/documents/document-table.ts';
import { type OwnDocuments, oldVersion, ownDocuments } from '../../recording/documents/own-documents.ts';
import {
  createdAtOf,
  type DocumentInput,
  displayName,
  documentText,
  isMapByLanguage,
  nameOfDocument,
  readDocument,
  refuse,
  refuseOtherTimes,
  valuesOfDocument,
} from './document.ts';
import { patchDocument } from './patch-document.ts';
import {
  faultOfInstanceId,
  foreignKeyViolation,
  idDiffers,
  instanceNotFound,
  instanceNoun,
  reservedInstanceId,
  typeNotFound,
} from './refusals.ts';
import { type InstanceColumns, instanceTable, typeTable, widthOf } from './store.ts';
import type { Put, WriteContext } from './write-types.ts';

/** Id and version in a request. */
type SentInstance = Pick<DocumentInput, 'id' | 'version'>;

interface WrittenInstance {
  /** The JSON text as stored and sent. */
  readonly document: string;
  /** The text of the jsonb column. */
  readonly fields: string;
  readonly wide: number;
  /** The name shown in change entries. */
  readonly name: string | undefined;
}

/** Parses the JSON text of an instance. Throws validation_violation with a detail for each wrong field. */
const readSentInstance = threaded(import.meta.url, 'readSentInstance', (text: string): SentInstance => {
  const { id, version } = readInstance(text);
  return { id, version };
});

/**
 * The instance with this content, replacing `before`. Times are in milliseconds since 1970. Throws payload_too_large
 * (contract 11), and validation_violation for values that jsonb cannot represent.
 */
const writtenInstance = threaded(
  import.meta.url,
  'writtenInstance',
  (
    text: string,
    { id, version, now }: { id: string; version: number; now: number },
    before: string | undefined,
  ): WrittenInstance => {
    const input = readInstance(text);
    const createdAt = before === undefined ? now : createdAtOf(before);
    const document = documentText(input, { id, version, createdAt, modifiedAt: Math.max(now, createdAt) });
    const values = valuesOfDocument(input);
    refuseLargeDocument('An instance', { bytes: Buffer.byteLength(document), values });
    return { document, fields: projectedJson(document), wide: widthOf(values), name: displayName(input.name) };
  },
);

/**
 * Applies a patch to a stored instance, as `patchDocument` does. A short patch with copies may produce a long document.
 * Unlike a PUT, a patch may not change the times that the service writes.
 */
const patchedInstance = threaded(
  import.meta.url,
  'patchedInstance',
  (document: string, patch: string): string => {
    const patched = patchDocument(document, patch);
    refuseOtherTimes(document, patched);
    return patched;
  },
  (_document, patch) => patch.includes('copy') || patch.includes('\\u'),
);

/**
 * The JSON text for the schema: the instance's own fields, with id, name and metadata only if the schema mentions them.
 * So a schema that forbids additional fields need not list these three.
 */
const textForSchema = threaded(
  import.meta.url,
  'textForSchema',
  (text: string, id: string, jsonSchema: string): string => {
    const input = readInstance(text);
    const spokenOf = mentionedFields(jsonSchema);
    return objectText([
      ...(spokenOf.has('id') ? [['id', JSON.stringify(id)] as const] : []),
      ...(spokenOf.has('name') && input.name !== undefined ? [['name', input.name] as const] : []),
      ...(spokenOf.has('metadata') ? [['metadata', objectText(input.metadata)] as const] : []),
      ...input.rest,
    ]);
  },
);

function readInstance(text: string): DocumentInput {
  const input = readDocument(text);
  const { name } = input;
  const isValid = name === undefined || kindOf(name) === 'string' || isMapByLanguage(name);
  refuse(isValid ? [] : [{ field: 'name', message: 'must be a string, or a map by language' }]);
  return input;
}

function mentionedFields(jsonSchema: string): Set<string> {
  const schema: { properties?: object; required?: unknown } | boolean = JSON.parse(jsonSchema);
  if (typeof schema === 'boolean') return new Set();
  const required = Array.isArray(schema.required) ? schema.required : [];
  return new Set([...Object.keys(schema.properties ?? {}), ...required]);
}

interface Type extends StoredDocument {
  readonly id: string;
  readonly jsonSchema: string | null;
}

/** An instance of a request or a patch. */
interface Sent extends SentInstance {
  /** JSON text. */
  readonly text: string;
}

export interface OwnInstances {
  find(tenant: string, type: string, id: string): Promise<string>;
  /** Returns the id: that of the document, or a random one. */
  create(author: Author, type: string, text: string): Promise<string>;
  put(author: Author, type: string, id: string, text: string): Promise<Put>;
  /** `patch` is the JSON text of a patch (RFC 6902). */
  patch(author: Author, type: string, id: string, patch: string): Promise<void>;
  remove(author: Author, type: string, id: string): Promise<void>;
}

/** Reads and writes instances by id (contract 9). */
export function createOwnInstances(context: WriteContext): OwnInstances {
  const { db } = context;

  async function typeOf(tenant: string, id: string): Promise<Type> {
    const found = await typeTable.find(db, tenant, id);
    if (found === undefined) throw typeNotFound();
    return { ...found, id };
  }

  function instancesOf({ id: type, version: typeVersion, jsonSchema }: Type): OwnDocuments<Sent, InstanceColumns> {
    return ownDocuments(context, {
      noun: instanceNoun,
      table: instanceTable(type),
      entity: { customType: type },
      schemaVersion: jsonSchema === null ? undefined : String(typeVersion),
      async written(sent, { id, version, now }, before) {
        const { name, ...row } = await writtenInstance(sent.text, { id, version, now }, before?.document);
        return { name, row };
      },
      nameOf: nameOfDocument,
    });
  }

  return {
    async find(tenant, type, id) {
      const found = await instanceTable(type).find(db, tenant, id);
      if (found === undefined) throw instanceNotFound();
      return found.document;
    },

    async create(author, typeId, text) {
      const sent = { text, ...(await readSentInstance(text)) };
      const id = sent.id ?? randomUUID();
      refuseId(id);
      const type = await typeOf(author.tenant, typeId);
      await checkAgainstSchema(context, type, sent, id);
      await ofDeletedType(instancesOf(type).create(author, id, sent));
      return id;
    },

    async put(author, typeId, id, text) {
      const sent = { text, ...(await readSentInstance(text)) };
      if (sent.id !== undefined && sent.id !== id) throw idDiffers();
      refuseId(id);
      const type = await typeOf(author.tenant, typeId);
      await checkAgainstSchema(context, type, sent, id);
      return await ofDeletedType(instancesOf(type).put(author, id, sent));
    },

    async patch(author, typeId, id, patch) {
      if (id === reservedInstanceId) throw instanceNotFound();
      const type = await typeOf(author.tenant, typeId);
      for (;;) {
        // Patches and checks without a lock, because a schema may be slow, and stores exactly what was checked.
        const current = await instanceTable(typeId).find(db, author.tenant, id);
        if (current === undefined) throw instanceNotFound();
        const text = await patchedInstance(current.document, patch);
        const sent = { text, ...(await readSentInstance(text)) };
        if (sent.id !== id) throw idDiffers();
        if (sent.version !== undefined && sent.version !== current.version) throw oldVersion();
        await checkAgainstSchema(context, type, sent, id);
        const isSame = ({ document }: { readonly document: string }) => document === current.document;
        if (await instancesOf(type).replace(author, id, (locked) => (isSame(locked) ? sent : undefined))) return;
      }
    },

    async remove(author, typeId, id) {
      await instancesOf(await typeOf(author.tenant, typeId)).remove(author, id);
    },
  };
}

/** The type may be deleted between its check and the write of an instance. */
async function ofDeletedType<Result>(write: Promise<Result>): Promise<Result> {
  try {
    return await write;
  } catch (error) {
    if (hasCode(error, foreignKeyViolation)) throw typeNotFound();
    throw error;
  }
}

function refuseId(id: string): void {
  const fault = faultOfInstanceId(id);
  refuse(fault === undefined ? [] : [{ field: 'id', message: fault }]);
}

async function checkAgainstSchema(
  { schemas }: WriteContext,
  { jsonSchema }: Type,
  { text }: Sent,
  id: string,
): Promise<void> {
  if (jsonSchema === null) return;
  await schemas.checkDocument(jsonSchema, await textForSchema(text, id, jsonSchema));
}
