import { randomUUID } from 'node:crypto';
import type { FastifyBaseLogger } from 'fastify';
import { AnnalsError } from '../../core/errors.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { Credentials } from '../../http/credentials.ts';
import {
  type Answer,
  type LanguageModels,
  type OnEvent,
  ProviderError,
  type ProviderName,
  providerNames,
} from '../../providers/port.ts';
import type { CallProgress, CallRequest, OwnModel, ProviderCaller } from '../../providers/provider-caller.ts';
import { endUserOf } from '../end-user.ts';
import type { ModelList } from '../models/read-models.ts';
import type { AnswerHead, IdOfToolCall } from './answer-body.ts';
import { errorOfAnswer } from './error-body.ts';
import { openaiLimits } from './limits.ts';
import { Members, refused } from './members.ts';
import { sealToolCallId, toolCallOpener } from './messages.ts';
import { type ChatRequest, readChatRequest } from './request.ts';
import { type ResponseRequest, readResponseRequest } from './response-request.ts';

/** A tenant's own key and its configuration item. */
interface OwnKey extends Pick<OwnModel, 'hasBudgets'> {
  readonly item: string;
  readonly token: string;
  readonly baseUrl?: string;
}

export interface OpenaiOptions {
  sealer: Sealer;
  caller: ProviderCaller;
  logger: FastifyBaseLogger;
  languageModels: Pick<LanguageModels, 'unsupported'>;
  catalogue: ModelList;
  /** The tenant's own keys. */
  keysOf(tenant: string): Promise<Partial<Record<ProviderName, OwnKey>>>;
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
  answer(progress: CallProgress & Pick<CallRequest, 'signal' | 'onToolCall' | 'drains'>): Promise<Answer>;
}

/** A validated request of `POST /responses`. */
export interface PreparedResponse {
  readonly request: ResponseRequest;
  /** Resolves to the vendor's answer. Rejects with the error for the client. */
  answer(options: {
    readonly signal: AbortSignal | undefined;
    readonly onAnswering?: () => void;
    /** Left out: the answer is not streamed. */
    readonly onEvent?: OnEvent;
  }): Promise<unknown>;
}

/** The caller's credentials. */
type Caller = Pick<Credentials, 'tenant' | 'clientId' | 'makerId' | 'models' | 'user'>;

/** The caller of a model; `header`: the end user of the request's header. */
type ModelCaller = Caller & { readonly header: string | undefined };

/** The first provider's formats: chat completions for every provider's models, responses for its own (ai-gateway). */
export interface Openai {
  /** The tenant's own keys. */
  keysOf: OpenaiOptions['keysOf'];
  /** Throws the error for the client if the request cannot be passed on. */
  prepareResponse(caller: ModelCaller, body: unknown): Promise<PreparedResponse>;
  /** Throws the error for the client if the call cannot be made. `characters`: of the body's text. */
  prepare(caller: ModelCaller, body: unknown, characters: number): Promise<PreparedCall>;
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
  const { sealer, caller, logger, languageModels, catalogue, keysOf, sharedModel, now } = options;

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
    return [...new Set(unsupported)];
  }

  return {
    keysOf,

    async prepare(of, body, characters) {
      const { tenant, clientId, makerId } = of;
      const { named, key } = await access(of, modelOf(body));
      const { provider, model } = named;
      const request = readChatRequest(body, characters, {
        openToolCall: toolCallOpener(sealer, { tenant, provider }),
        isTranslated: provider === 'anthropic' || provider === 'google',
      });
      const leftOut = await leftOutFor(named, request);
      const user = endUserOf(of, { header: of.header, body: request.user });
      const origin = { operation: 'openai', clientId, makerId, ...user } as const;
      const own = key && { ...named, apiKey: key.token, baseUrl: key.baseUrl, hasBudgets: key.hasBudgets };
      return {
        request,
        head: { id: `chatcmpl-${randomUUID()}`, created: Math.floor(now() / 1_000), model: `${provider}/${model}` },
        leftOut,
        idOf: (call) => sealToolCallId(sealer, { tenant, provider }, call),
        async answer({ signal, onToolCall, drains, ...progress }) {
          try {
            const call = { ...request.call, tenant, origin, own, signal, onToolCall, drains };
            const answer = await caller.call(call, progress);
            // Without some of its tool calls an answer would look complete.
            if (answer.unreadToolCalls !== undefined) throw new ProviderError('broken', answer.usage);
            return answer;
          } catch (error) {
            throw errorOfAnswer(error, key?.item);
          }
        },
      };
    },

    async prepareResponse(of, body) {
      const { tenant, clientId, makerId } = of;
      const { named, key } = await access(of, modelOf(body));
      if (named.provider !== 'openai') {
        throw refused('model', 'must be a model of openai here: for other models use chat/completions');
      }
      const request = readResponseRequest(body);
      const { inputBound, maxTokens, leftOut } = request;
      if (key === undefined && inputBound === undefined) {
        throw refused('input', 'must not have files with the shared token: their cost has no known bound');
      }
      if (leftOut.length > 0) logger.info({ tenant, tools: leftOut }, 'hosted tools of a response were left out');
      const user = endUserOf(of, { header: of.header, body: request.user });
      const origin = { operation: 'openai', clientId, makerId, ...user } as const;
      const own = key && { ...named, apiKey: key.token, hasBudgets: key.hasBudgets };
      return {
        request,
        async answer({ signal, onAnswering, onEvent }) {
          const passThrough = { body: request.body, onEvent };
          const call = { tenant, origin, own, messages: [], maxTokens, inputBound, signal, passThrough };
          try {
            const { passed } = await caller.call({ ...call, drains: onEvent !== undefined }, { onAnswering });
            return passed;
          } catch (error) {
            throw errorOfAnswer(error, key?.item);
          }
        },
      };
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

/** Read first: it decides which signatures are sent back. */
function modelOf(body: unknown): string {
  const isObject = typeof body === 'object' && !Array.isArray(body);
  const model = new Members(isObject ? (body ?? {}) : {}, '').name('model', openaiLimits.modelCharacters);
  if (model === undefined) throw refused('model', 'is required, as a string');
  return model;
}

/** The model of a request. */
interface NamedModel {
  readonly provider: ProviderName;
  readonly model: string;
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

function unknownModel(name: string): AnnalsError {
  const shown = name.slice(0, 256).toWellFormed();
  const message = `There is no model ${JSON.stringify(shown)}: it is not known, the tenant has no key of its provider, or your key may not call it.`;
  return new AnnalsError('resource_not_found', message, { details: [{ field: 'model', message }] });
}
