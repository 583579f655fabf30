import { type JsonObject, type JsonValue, stringifyJson } from '@annals/client/json';
import { mask, withoutServiceMembers } from '../data/json-editor/document-text.ts';

/** The documents that the service keeps itself and that can be brought back. */
export type OwnKind = 'instance' | 'agent' | 'configuration';

/** What bringing a document back writes. */
export interface Plan {
  /** The document of today without what the service sets; undefined where it is deleted. */
  readonly today: JsonObject | undefined;
  /** The document to write, in the same form. */
  readonly next: JsonObject;
  /** What is not brought back, in sentences. */
  readonly stays: readonly string[];
}

/** Why a document cannot be brought back. */
interface Refusal {
  readonly refused: string;
}

/** Plans to bring a document back, without secrets: the history masks them. `today`: undefined if it is deleted. */
export function planOf(kind: OwnKind, then: JsonObject, today: JsonObject | undefined): Plan | Refusal {
  const was = contentOf(kind, then);
  const is = today === undefined ? undefined : contentOf(kind, today);
  switch (kind) {
    case 'instance':
      return planOfInstance(was, is);
    case 'agent':
      return planOfAgent(was, is);
    case 'configuration':
      return planOfSetting(was, is);
  }
}

/** The members that the service sets, in addition to those of `metadata`. */
const ofService: Readonly<Record<OwnKind, readonly string[]>> = {
  instance: [],
  agent: ['disabledReason'],
  configuration: ['key', 'version'],
};

function contentOf(kind: OwnKind, document: JsonObject): JsonObject {
  const content = withoutServiceMembers(document);
  for (const member of ofService[kind]) content.delete(member);
  return content;
}

function planOfInstance(was: JsonObject, today: JsonObject | undefined): Plan {
  const stays: string[] = [];
  const next = unmasked(was, today, '', stays);
  return { today, next: next instanceof Map ? next : was, stays };
}

/** Replaces each mask by the value of today, or drops it. An array with a mask stays whole: items may have moved. */
function unmasked(was: JsonValue, is: JsonValue | undefined, path: string, stays: string[]): JsonValue | undefined {
  if (was instanceof Map) {
    const next: JsonObject = new Map();
    for (const [key, value] of was) {
      const member = unmasked(value, is instanceof Map ? is.get(key) : undefined, below(path, key), stays);
      if (member !== undefined) next.set(key, member);
    }
    return next;
  }
  if (was !== mask && !(Array.isArray(was) && hasMask(was))) return was;
  stays.push(
    is === undefined
      ? `${path} is left out: the history does not have its value.`
      : `${path} stays as it is today: the history does not have its value.`,
  );
  return is;
}

function below(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}

function hasMask(value: JsonValue): boolean {
  const open: JsonValue[] = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next === mask) return true;
    if (Array.isArray(next)) for (const item of next) open.push(item);
    else if (next instanceof Map) for (const member of next.values()) open.push(member);
  }
  return false;
}

/** The values of headers belong to their server and its address, as a key does to its provider. */
function planOfAgent(was: JsonObject, today: JsonObject | undefined): Plan | Refusal {
  const wasServers = was.get('mcpServers');
  const isServers = today?.get('mcpServers');
  if (wasServers === undefined || !hasMask(wasServers)) return planOfKey(was, today);
  const stay = 'mcpServers stays as it is today: headers of its servers are not brought back.';
  if (readersOfHeaders(wasServers) === readersOfHeaders(isServers)) {
    return withStay(
      planOfKey(was, today),
      'The headers of mcpServers stay as they are today: they are not brought back.',
    );
  }
  const next = new Map(was);
  if (isServers === undefined) next.delete('mcpServers');
  else next.set('mcpServers', isServers);
  const gone = 'mcpServers is left out: headers of its servers are not brought back.';
  return withStay(planOfKey(next, today), isServers === undefined ? gone : stay);
}

function withStay(plan: Plan | Refusal, stay: string): Plan | Refusal {
  return 'refused' in plan ? plan : { ...plan, stays: [...plan.stays, stay] };
}

/** The names and addresses of servers with the names of their headers. */
function readersOfHeaders(servers: JsonValue | undefined): string {
  const identities = (Array.isArray(servers) ? servers : []).map((server) => {
    const headers = server instanceof Map ? server.get('headers') : undefined;
    return server instanceof Map
      ? [
          server.get('name') ?? null,
          server.get('url') ?? null,
          headers instanceof Map ? [...headers.keys()].sort() : [],
        ]
      : null;
  });
  return stringifyJson(identities);
}

/**
 * A key belongs to its provider and its address. The service keeps the stored one where it gets the mask for the same
 * ones.
 */
function planOfKey(was: JsonObject, today: JsonObject | undefined): Plan | Refusal {
  const wasConfig = was.get('llmConfig');
  if (!(wasConfig instanceof Map) || !wasConfig.has('apiKey')) return { today, next: was, stays: [] };
  if (today === undefined) {
    return { refused: 'It had a key, which cannot be read again. Create the agent again with its key.' };
  }
  const isConfig = today.get('llmConfig');
  const keepsKey =
    isConfig instanceof Map && isConfig.has('apiKey') && readerOfKey(isConfig) === readerOfKey(wasConfig);
  if (keepsKey)
    return { today, next: was, stays: ['llmConfig.apiKey stays as it is today: keys are not brought back.'] };
  const next = new Map(was);
  if (isConfig === undefined) next.delete('llmConfig');
  else next.set('llmConfig', isConfig);
  return {
    today,
    next,
    stays: [
      'llmConfig stays as it is today: its key was for another provider or address, and keys are not brought back.',
    ],
  };
}

function readerOfKey(llmConfig: JsonObject): string {
  const params = llmConfig.get('selfHostedParams');
  const address = llmConfig.get('baseUrl') ?? (params instanceof Map ? params.get('url') : undefined) ?? null;
  return stringifyJson([llmConfig.get('provider') ?? null, address]);
}

/** Annals never shows a secured value. So it stays, whether it was secured then or is so today. */
function planOfSetting(was: JsonObject, today: JsonObject | undefined): Plan | Refusal {
  const wasSecured = was.get('secured') === true || was.get('value') === mask;
  if (!wasSecured && today?.get('secured') !== true) return { today, next: was, stays: [] };
  if (today === undefined) {
    return { refused: 'Its value was secured, so it cannot be read again. Create the setting again with its value.' };
  }
  const next = new Map(was);
  for (const member of ['value', 'secured']) next.set(member, today.get(member) ?? null);
  return { today, next, stays: ['value stays as it is today: secured values are not brought back.'] };
}
