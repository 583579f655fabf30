import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyBaseLogger } from 'fastify';
import type { JsonNode } from '../../core/json/tape.ts';
import type { Sealer } from '../../core/sealing.ts';
import { type Answer, type LanguageModels, type ProviderName, providerNames } from '../../providers/port.ts';
import type { CallProgress, CallRequest, ProviderCaller } from '../../providers/provider-caller.ts';
import { type Keyword, unenforcedKeyword } from '../../providers/strict-schemas.ts';
import { endUserOf } from '../end-user.ts';
import { betasOf } from '../formats/betas.ts';
import { errorOfAnswer } from '../formats/call-errors.ts';
import { readDocument } from '../formats/document.ts';
import { refused } from '../formats/members.ts';
import { type Caller, type KeysOf, type ModelCaller, modelOf, type OwnKey, unknownModel } from '../formats/models.ts';
import { createPassing, type PreparedPassing } from '../formats/passing.ts';
import type { ModelList } from '../models/read-models.ts';
import type { AnswerHead, IdOfToolCall } from './answer-body.ts';
import { sealToolCallId, toolCallOpener } from './messages.ts';
import { readPassedEmbeddings } from './passed-embeddings.ts';
import { type OpenaiOperation, readPassedRequest } from './passed-request.ts';
import { type ChatRequest, readChatRequest } from './request.ts';

export interface OpenaiOptions {
  sealer: Sealer;
  caller: ProviderCaller;
  logger: FastifyBaseLogger;
  languageModels: Pick<LanguageModels, 'unsupported'>;
  catalogue: ModelList;
  /** The tenant's own keys. */
  keysOf: KeysOf;
  /** The model of the shared token; undefined if the service has none. */
  sharedModel: string | undefined;
  /** Milliseconds since 1970. */
  now: () => number;
}

/** A validated call. */
export interface PreparedCall {
  readonly request: ChatRequest;
  readonly head: AnswerHead;
  readonly idOf: IdOfToolCall;
  /** Members that the model does not support and that are left out of the call. */
  readonly leftOut: readonly string[];
  /** Rejects with the error for the client. */
  answer(
    progress: CallProgress & Pick<CallRequest, 'signal' | 'onReasoning' | 'onToolCall' | 'drains'>,
  ): Promise<Answer>;
}

/** A request as it came. */
export interface SentRequest {
  readonly body: unknown;
  readonly bodyText: string;
  readonly headers: IncomingHttpHeaders;
}

/** The first provider's formats: passed through to servers that speak them, and translated for others (ai-gateway). */
export interface Openai {
  /** The tenant's own keys. */
  keysOf: OpenaiOptions['keysOf'];
  /** Throws the error for the client if the call cannot be made. */
  prepare(caller: ModelCaller, operation: OpenaiOperation, sent: SentRequest): Promise<PreparedCall | PreparedPassing>;
  /** Throws the error for the client if the embeddings cannot be asked for. */
  prepareEmbeddings(caller: ModelCaller, sent: SentRequest): Promise<PreparedPassing>;
  models(caller: Caller): Promise<ListedModel[]>;
  model(caller: Caller, name: string): Promise<ListedModel>;
}

/** The members of a request, by the settings that they become. */
const memberOfSetting: Readonly<Record<string, string>> = {
  topP: 'top_p',
  toolChoice: 'tool_choice',
  parallelToolCalls: 'parallel_tool_calls',
  responseFormat: 'response_format',
  reasoningEffort: 'reasoning_effort',
  maxOutputTokens: 'max_completion_tokens',
};

/** Clients' agents set `strict` on every tool. Without it the model still has the tool's schema. */
const optional: ReadonlySet<string> = new Set(['strict']);

export function createOpenai(options: OpenaiOptions): Openai {
  const { sealer, caller, languageModels, catalogue, keysOf, sharedModel, now } = options;
  const pass = createPassing(options);

  /** The model and its key; without a key the shared token applies. */
  async function access(
    { tenant, models }: Caller,
    name: string,
  ): Promise<{ named: NamedModel; key: OwnKey | undefined }> {
    const named = modelNamed(name, catalogue) ?? sharedNamed(name);
    const keys = await keysOf(tenant);
    if (named === undefined || models?.includes(listedModel(named).id) === false) throw unknownModel(name);
    const key = keys[named.provider];
    const isShared = named.provider === 'openai' && named.model === sharedModel;
    if (key === undefined && !isShared) throw unknownModel(name);
    return { named, key };
  }

  function sharedNamed(name: string): NamedModel | undefined {
    return name === sharedModel ? { provider: 'openai', model: name } : undefined;
  }

  /** The optional members that the model does not support. Throws for an unsupported required one. */
  async function leftOutFor(named: NamedModel, { call }: ChatRequest): Promise<readonly string[]> {
    const { messages: _, ...settings } = call;
    const unsupported = await languageModels.unsupported({ ...settings, ...named });
    const needed = unsupported.find((setting) => !optional.has(setting));
    if (needed !== undefined) throw refused(memberOfSetting[needed] ?? needed, 'is not taken by this model');
    if (!unsupported.includes('strict')) refuseUnenforced(named, call);
    return [...new Set(unsupported)];
  }

  async function prepareTranslated(
    of: ModelCaller,
    { sent, named, key }: { sent: SentRequest; named: NamedModel; key: OwnKey | undefined },
  ): Promise<PreparedCall> {
    const { tenant, clientId, makerId } = of;
    const { provider, model } = named;
    const openToolCall = toolCallOpener(sealer, { tenant, provider });
    const request = readChatRequest(sent.body, { characters: sent.bodyText.length, provider, openToolCall });
    const { mayCacheForHour } = request;
    const leftOut = await leftOutFor(named, request);
    const user = endUserOf(of, { header: of.header, body: request.user });
    const origin = { operation: 'openai', clientId, makerId, ...user } as const;
    const own = key && { ...named, apiKey: key.token, baseUrl: key.baseUrl, hasBudgets: key.hasBudgets };
    return {
      request,
      head: { id: `chatcmpl-${randomUUID()}`, created: Math.floor(now() / 1_000), model: `${provider}/${model}` },
      leftOut,
      idOf: (call) => sealToolCallId(sealer, { tenant, provider }, call),
      async answer({ signal, onReasoning, onToolCall, drains, ...progress }) {
        try {
          const target = { tenant, origin, own, mayCacheForHour };
          const call = { ...request.call, ...target, signal, onReasoning, onToolCall, drains };
          return await caller.call(call, progress);
        } catch (error) {
          throw errorOfAnswer(error, key?.item);
        }
      },
    };
  }

  async function preparePassing(
    of: ModelCaller,
    { operation, sent, document, provider, model, key }: Passing,
  ): Promise<PreparedPassing> {
    const { tenant } = of;
    const isShared = key === undefined;
    const openToolCall = toolCallOpener(sealer, { tenant, provider });
    const target = { operation, provider, model, tenant, isShared, openToolCall };
    const passed = await readPassedRequest(document, sent.body, target);
    if (isShared && passed.inputBound === undefined) {
      const field = operation === 'responses' ? 'input' : 'messages';
      throw refused(field, 'must not have files with the shared token: their cost has no known bound');
    }
    const headers = isShared ? {} : betasOf(sent.headers, 'openai-beta', refusedBetas);
    return pass(of, { format: 'openai', operation, passed, provider, model, key, headers });
  }

  return {
    keysOf,

    async prepare(of, operation, sent) {
      const name = modelOf(sent.body);
      const document = readDocument(sent.bodyText, sent.body);
      const { named, key } = await access(of, name);
      const { provider } = named;
      if (provider === 'openai' || provider === 'self_hosted') {
        return await preparePassing(of, { operation, sent, document, provider, model: named.model, key });
      }
      if (operation === 'chat/completions') return await prepareTranslated(of, { sent, named, key });
      throw refused('model', 'must be a model of openai or self_hosted here: for other models use chat/completions');
    },

    async prepareEmbeddings(of, sent) {
      const name = modelOf(sent.body);
      const document = readDocument(sent.bodyText, sent.body);
      const { named, key } = await access(of, name);
      const { provider, model } = named;
      if (provider !== 'openai' && provider !== 'self_hosted') {
        throw refused('model', 'must be a model of openai or self_hosted here');
      }
      if (key === undefined) {
        throw refused('model', 'has no embeddings with the shared token: set your key of openai, providerApiToken');
      }
      const passed = readPassedEmbeddings(document, sent.body, { provider, model });
      const headers = betasOf(sent.headers, 'openai-beta', refusedBetas);
      return pass(of, { format: 'openai', operation: 'embeddings', passed, provider, model, key, headers });
    },

    async models({ tenant, models }) {
      const keys = await keysOf(tenant);
      const own = (Object.keys(keys) as ProviderName[]).filter((provider) => keys[provider] !== undefined);
      return modelsOf(catalogue, { own, shared: sharedModel }).filter(({ id }) => models?.includes(id) !== false);
    },

    async model(of, name) {
      const { named } = await access(of, name);
      return listedModel(named);
    },
  };
}

/** Refuses keywords in strict schemas that the provider does not enforce. */
function refuseUnenforced(
  { provider }: NamedModel,
  { tools = [], responseFormat }: Pick<ChatRequest['call'], 'tools' | 'responseFormat'>,
): void {
  for (const [index, { strict, inputSchema }] of tools.entries()) {
    if (strict !== true) continue;
    refuseKeyword(`tools.${index}.function.parameters`, unenforcedKeyword(provider, 'tools', inputSchema));
  }
  if (responseFormat?.strict === true && responseFormat.schema !== undefined) {
    refuseKeyword('response_format.json_schema.schema', unenforcedKeyword(provider, 'format', responseFormat.schema));
  }
}

function refuseKeyword(place: string, found: Keyword | undefined): void {
  if (found === undefined) return;
  const field = [place, ...found.path, found.name].join('.').slice(0, 500).toWellFormed();
  throw refused(field, 'is not enforced by this provider with this value: leave it out, or leave out strict');
}

/** Betas that keep something at the vendor, or fetch or run it there. */
const refusedBetas = /^(?:assistants|chatkit|containers?|code|files?|fetch|mcp|skills?|web|hosted|agents?|realtime)\b/i;

/** The model of a request. */
interface NamedModel {
  readonly provider: ProviderName;
  readonly model: string;
}

/** A request to pass through. */
interface Passing {
  readonly operation: OpenaiOperation;
  readonly sent: SentRequest;
  readonly document: JsonNode;
  readonly provider: 'openai' | 'self_hosted';
  readonly model: string;
  readonly key: OwnKey | undefined;
}

/** A model in `GET /models`. */
interface ListedModel {
  readonly id: string;
  readonly object: 'model';
  readonly created: number;
  readonly owned_by: string;
}

/** `provider/model`, or the bare id of a model of the catalogue; undefined for anything else. */
function modelNamed(name: string, catalogue: ModelList): NamedModel | undefined {
  const slash = name.indexOf('/');
  const provider = providerNames.find((prefix) => prefix === name.slice(0, Math.max(0, slash)));
  const model = name.slice(slash + 1);
  if (provider !== undefined && model !== '') return { provider, model };
  const group = catalogue.find(({ models }) => models.some(({ id }) => id === name));
  return group && { provider: group.provider, model: name };
}

/** The models that a tenant may call: of the providers of its keys, and the one of the shared token. */
function modelsOf(
  catalogue: ModelList,
  { own, shared }: { own: readonly ProviderName[]; shared: string | undefined },
): ListedModel[] {
  const listed = catalogue.flatMap(({ provider, models }) =>
    own.includes(provider) ? models.map(({ id }) => listedModel({ provider, model: id })) : [],
  );
  return own.includes('openai') || shared === undefined
    ? listed
    : [listedModel({ provider: 'openai', model: shared }), ...listed];
}

/** `created` is required by the format but unknown for the catalogue. */
function listedModel({ provider, model }: NamedModel): ListedModel {
  return { id: `${provider}/${model}`, object: 'model', created: 0, owned_by: provider };
}
