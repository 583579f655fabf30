import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyBaseLogger } from 'fastify';
import type { ProviderCaller } from '../../providers/provider-caller.ts';
import { betasOf } from '../formats/betas.ts';
import { errorOfAnswer, passedHeaders } from '../formats/call-errors.ts';
import { readDocument } from '../formats/document.ts';
import { refused } from '../formats/members.ts';
import { type Caller, type KeysOf, type ModelCaller, modelOf, type OwnKey, unknownModel } from '../formats/models.ts';
import { createPassing, type PassedThrough, type PreparedPassing } from '../formats/passing.ts';
import type { ModelList } from '../models/read-models.ts';
import { anthropicLimits } from './limits.ts';
import { type AnthropicOperation, readPassedRequest } from './passed-request.ts';

export interface AnthropicOptions {
  readonly caller: ProviderCaller;
  readonly logger: FastifyBaseLogger;
  readonly catalogue: ModelList;
  readonly keysOf: KeysOf;
}

/** A request as it came. */
export interface SentRequest {
  readonly body: unknown;
  readonly bodyText: string;
  readonly headers: IncomingHttpHeaders;
  /** From its `?`; empty without one. */
  readonly query: string;
}

/** The second provider's format, passed through with the tenant's own key (ai-gateway). */
export interface Anthropic {
  readonly keysOf: KeysOf;
  /** Throws the error for the client if the call cannot be made. */
  prepare(of: ModelCaller, sent: SentRequest): Promise<PreparedPassing>;
  /** Counts the tokens of a request: a call without a reservation and a record. Rejects with the error for the client. */
  countTokens(of: Caller, sent: SentRequest, signal: AbortSignal): Promise<PassedThrough>;
  /** The models that the caller may name, a page of them. Throws validation_violation. */
  models(of: Caller, page: ModelPage): Promise<ListedModels>;
  model(of: Caller, name: string): Promise<ListedModel>;
}

/** A page of models, as the query of a request says. */
export interface ModelPage {
  readonly limit: number;
  readonly afterId: string | undefined;
  readonly beforeId: string | undefined;
}

export interface ListedModel {
  readonly type: 'model';
  readonly id: string;
  readonly display_name: string;
  readonly created_at: string;
}

export interface ListedModels {
  readonly data: readonly ListedModel[];
  readonly has_more: boolean;
  readonly first_id: string | null;
  readonly last_id: string | null;
}

const provider = 'anthropic';
const prefix = `${provider}/`;

/**
 * Betas that keep something at the vendor, fetch or run it there, reach other servers from there, or let another model
 * answer.
 */
const refusedBetas =
  /^(?:advisor|agent-memory|ccr-|ce-|code-execution|container|dreaming|efs-|environments|fallback|files-api|managed-agents|mcp-|message-batches|message-threads|sandbox|server-side-fallback|skills|telemetry-destinations|user-profiles|web-fetch|web-search|webhooks)/i;

export function createAnthropic(options: AnthropicOptions): Anthropic {
  const { caller, catalogue, keysOf } = options;
  const pass = createPassing(options);
  const listed = catalogue.filter((group) => group.provider === provider).flatMap(({ models }) => models);
  const ofOthers = new Set(
    catalogue.filter((group) => group.provider !== provider).flatMap(({ models }) => models.map(({ id }) => id)),
  );

  /** The vendor's name of a model, and the tenant's key. Throws resource_not_found. */
  async function access({ tenant, models }: Caller, name: string): Promise<{ model: string; key: OwnKey }> {
    const model = name.startsWith(prefix) ? name.slice(prefix.length) : name;
    const { anthropic: key } = await keysOf(tenant);
    const isOfOthers = model === '' || model.includes('/') || ofOthers.has(model);
    if (key === undefined || isOfOthers || models?.includes(prefix + model) === false) throw unknownModel(name);
    return { model, key };
  }

  async function read(of: Caller, operation: AnthropicOperation, { body, bodyText, headers, query }: SentRequest) {
    const name = modelOf(body);
    const document = readDocument(bodyText, body);
    const { model, key } = await access(of, name);
    const passed = await readPassedRequest(document, body, { operation, model });
    if (query.length > anthropicLimits.queryBytes) {
      throw refused('query', `must have at most ${anthropicLimits.queryBytes} bytes`);
    }
    return { operation, passed, provider, model, key, headers: headersOf(headers), query } as const;
  }

  return {
    keysOf,

    async prepare(of, sent) {
      return pass(of, { format: 'anthropic', ...(await read(of, 'messages', sent)) });
    },

    async countTokens(of, sent, signal) {
      const { operation, passed, model, key, headers, query } = await read(of, 'messages/count_tokens', sent);
      const own = { provider, model, apiKey: key.token, baseUrl: key.baseUrl } as const;
      const passThrough = { operation, bytes: passed.bytes, headers, query, hidesUsage: false } as const;
      try {
        const { passed: answer } = await caller.callFree(own, { passThrough, signal });
        if (answer === undefined) throw new Error('an answer was not passed through');
        return { text: answer.text, headers: passedHeaders(answer.headers, true) };
      } catch (error) {
        throw errorOfAnswer(error, key.item, { isFree: true });
      }
    },

    async models({ tenant, models }, page) {
      const { anthropic: key } = await keysOf(tenant);
      const all = listed.filter(({ id }) => key !== undefined && models?.includes(prefix + id) !== false);
      return pageOf(all.map(listedModel), page);
    },

    async model(of, name) {
      const { model } = await access(of, name);
      return listedModel(listed.find(({ id }) => id === model) ?? { id: model, name: model });
    },
  };
}

/** The headers of the client that go out. */
function headersOf(headers: IncomingHttpHeaders): Record<string, string> {
  const version = headers['anthropic-version']?.toString();
  if (version !== undefined && !/^\d{4}-\d{2}-\d{2}$/.test(version)) {
    throw refused('anthropic-version', 'must be a date such as 2023-06-01');
  }
  const betas = betasOf(headers, 'anthropic-beta', refusedBetas);
  return version === undefined ? betas : { 'anthropic-version': version, ...betas };
}

/** The format requires a time, which is unknown. */
function listedModel({ id, name }: { readonly id: string; readonly name: string }): ListedModel {
  return { type: 'model', id, display_name: name, created_at: '1970-01-01T00:00:00Z' };
}

function pageOf(all: readonly ListedModel[], { limit, afterId, beforeId }: ModelPage): ListedModels {
  if (afterId !== undefined && beforeId !== undefined) {
    throw refused('before_id', 'must be left out where after_id is given');
  }
  const place = (name: string, id: string) => {
    const index = all.findIndex((model) => model.id === id);
    if (index === -1) throw refused(name, 'is not the id of a listed model');
    return index;
  };
  const begin = afterId === undefined ? 0 : place('after_id', afterId) + 1;
  const end = beforeId === undefined ? all.length : place('before_id', beforeId);
  const data = beforeId === undefined ? all.slice(begin, begin + limit) : all.slice(Math.max(0, end - limit), end);
  return {
    data,
    has_more: data.length < end - begin,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  };
}
