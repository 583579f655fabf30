import { randomUUID } from 'node:crypto';
import type { Author } from '../../http/credentials.ts';
import { hasCode } from '../../postgres/write-once.ts';
import type { StoredDocument } from '../../recording/documents/document-table.ts';
import { type OwnDocuments, oldVersion, ownDocuments } from '../../recording/documents/own-documents.ts';
import { nameOfDocument, refuse } from './document.ts';
import { type InstanceColumns, instanceTable } from './instance-store.ts';
import {
  patchedInstance,
  readSentInstance,
  type SentInstance,
  textForSchema,
  writtenInstance,
} from './instance-texts.ts';
import {
  faultOfInstanceId,
  foreignKeyViolation,
  idDiffers,
  instanceNotFound,
  instanceNoun,
  reservedInstanceId,
  typeNotFound,
} from './refusals.ts';
import { typeTable } from './type-store.ts';
import type { Put, WriteContext } from './write-types.ts';

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
