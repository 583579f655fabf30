import { type AgentInput, ApiError } from '@annals/client';
import { type JsonObject, type JsonValue, parseJson, stringifyJson, toPlain } from '@annals/client/json';
import { quoted } from '../../../src/query/written.ts';
import { forgetAgentNames } from '../agent-names/agent-names.tsx';
import { annals } from '../api/annals.ts';
import { allows } from '../api/session.ts';
import { contentToSave, mask, versionOf } from '../data/json-editor/document-text.ts';
import type { DocumentKey } from '../history/document-queries.ts';
import type { OwnKind, Plan } from './plan.ts';

/**
 * What of the service's own documents an entity type may be for this session; undefined for those that it may not
 * write.
 */
export function writableKind(entity: string): OwnKind | undefined {
  if (entity === 'agent') return allows('ai.agent_manage') ? 'agent' : undefined;
  if (entity === 'configuration') return allows('configuration.configuration_manage') ? 'configuration' : undefined;
  return nameOfType.test(entity) && allows('schema.custominstance_manage') ? 'instance' : undefined;
}

const nameOfType = /^[A-Z][A-Z0-9_]{0,62}$/;

/** Whether documents of an entity type may be the service's own. Types of applications may have such names too. */
export function mayBeOwn(entity: string): boolean {
  return entity === 'agent' || entity === 'configuration' || nameOfType.test(entity);
}

/** Whether the entity type is one that the tenant has made here. Applications may have types with such names too. */
export async function isOwnType(type: string, signal: AbortSignal): Promise<boolean> {
  if (allows('schema.schema_read', 'schema.schema_manage')) {
    const q = `id:${quoted(type)}`;
    return (await annals().customEntities.list({ q, pageSize: 1 }, { signal })).items.length > 0;
  }
  try {
    await annals().instances(type).list({ pageSize: 1, fields: 'id' }, { signal });
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.type === 'resource_not_found') return false;
    throw error;
  }
}

/**
 * The document as it is stored now; undefined where there is none. A list without it is no error in the browser's log,
 * as a 404 would be.
 */
export async function readToday(
  kind: OwnKind,
  { entity, entityId }: DocumentKey,
  signal?: AbortSignal,
): Promise<JsonObject | undefined> {
  const onlyThis = { q: `id:${quoted(entityId)}`, pageSize: 1 };
  switch (kind) {
    case 'instance':
      return (await annals().exact.instances(entity).list(onlyThis, { signal })).items[0];
    case 'agent':
      return objectOf((await annals().agents.list(onlyThis, { signal })).items[0]);
    case 'configuration': {
      const [item] = await annals().exact.configurations.list({ keys: [entityId] }, { signal });
      return objectOf(item);
    }
  }
}

/** Any value of JavaScript as an object with exact values; undefined where it is none. */
function objectOf(value: unknown): JsonObject | undefined {
  const parsed: JsonValue | undefined = value === undefined ? undefined : parseJson(stringifyJson(value));
  return parsed instanceof Map ? parsed : undefined;
}

interface Writing {
  readonly document: DocumentKey;
  readonly plan: Plan;
  /** The stored document that the plan was made for. */
  readonly read: JsonObject | undefined;
}

/** Writes what was planned. Throws ApiError, conflict_resource, where the document has changed since it was read. */
export async function writePlanned(kind: OwnKind, { document, plan: { next }, read }: Writing): Promise<void> {
  const { entity, entityId: id } = document;
  switch (kind) {
    case 'instance': {
      const instances = annals().exact.instances(entity);
      const version = read === undefined ? undefined : versionOf(read);
      const content = contentToSave(next, { id, version });
      await (read === undefined ? instances.create(content) : instances.put(id, content));
      return;
    }
    case 'agent': {
      // A PUT without a version would replace an agent that was created in between.
      if (read === undefined && (await readToday(kind, document)) !== undefined) {
        throw new ApiError('conflict_resource', 'There is an agent with this id already.', { status: 409 });
      }
      const version = read === undefined ? undefined : versionOf(read);
      await annals().agents.put(id, toPlain(contentToSave(next, { id, version })) as AgentInput);
      forgetAgentNames();
      return;
    }
    case 'configuration': {
      const { configurations } = annals().exact;
      const item = settingOf(next);
      if (read === undefined) await configurations.create([{ key: id, ...item }]);
      else await configurations.replace(id, { ...item, version: Number(stringifyJson(read.get('version') ?? null)) });
    }
  }
}

/** A secured value is sent as the mask that answers show: the service keeps the stored one. */
function settingOf(setting: JsonObject) {
  const written = setting.get('description');
  const description = typeof written === 'string' ? { description: written } : {};
  if (setting.get('secured') === true) return { value: mask, secured: true as const, ...description };
  return { value: setting.get('value') ?? null, secured: false as const, ...description };
}
