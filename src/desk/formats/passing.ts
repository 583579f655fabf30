import type { FastifyBaseLogger } from 'fastify';
import type { CallOrigin } from '../../providers/call-record.ts';
import type {
  OnPassedText,
  PassedOperation,
  PassThroughRequest,
  ProviderName,
  VendorHeaders,
} from '../../providers/port.ts';
import type { ProviderCaller } from '../../providers/provider-caller.ts';
import { endUserOf } from '../end-user.ts';
import { errorOfAnswer, passedHeaders } from './call-errors.ts';
import type { ModelCaller, OwnKey } from './models.ts';
import type { PassedRequest } from './passed-request.ts';

/** A validated request that is passed through. */
export interface PreparedPassing {
  readonly passed: PassedRequest;
  readonly leftOut: readonly string[];
  /** Resolves to the vendor's answer: an empty text where it was streamed. Rejects with the error for the client. */
  answer(options: {
    readonly signal: AbortSignal | undefined;
    /** Called with the headers of a stream when it begins. */
    readonly onAnswering?: (headers: VendorHeaders) => void;
    /** Left out: the answer is not streamed. */
    readonly onText?: OnPassedText;
  }): Promise<PassedThrough>;
}

/** An answer as the vendor sent it. */
export interface PassedThrough {
  readonly text: string;
  readonly headers: VendorHeaders;
}

/** A request to pass through, and where it goes. */
export interface Passing extends Pick<PassThroughRequest, 'headers' | 'query'> {
  readonly format: CallOrigin['operation'];
  readonly operation: PassedOperation;
  readonly passed: PassedRequest;
  readonly provider: ProviderName;
  /** The vendor's name of it. */
  readonly model: string;
  /** Undefined: the shared token. */
  readonly key: OwnKey | undefined;
}

/** Prepares the call of a request in its provider's own format. Throws where it names another user than its key's. */
export type PreparePassing = (of: ModelCaller, passing: Passing) => PreparedPassing;

export function createPassing({
  caller,
  logger,
}: {
  readonly caller: Pick<ProviderCaller, 'call'>;
  readonly logger: FastifyBaseLogger;
}): PreparePassing {
  return (of, { format, operation, passed, provider, model, key, headers, query }) => {
    const { tenant, clientId, makerId } = of;
    const { inputBound, maxTokens, answers, isUnpriced, mayCacheForHour, leftOut, unknown, hidesUsage } = passed;
    if (leftOut.length > 0) logger.info({ tenant, tools: leftOut }, 'hosted tools of a request were left out');
    if (unknown.length > 0) {
      logger.info({ tenant, members: unknown.slice(0, maxLogged) }, 'a request has members whose cost is unknown');
    }
    const user = endUserOf(of, { header: of.header, body: passed.user, metadata: passed.metadataUser });
    const origin = { operation: format, clientId, makerId, ...user };
    const own = key && { provider, model, apiKey: key.token, baseUrl: key.baseUrl, hasBudgets: key.hasBudgets };
    const bounds = { maxTokens, inputBound, answers, isUnpriced, mayCacheForHour };
    const isOwn = key !== undefined;
    return {
      passed,
      leftOut,
      async answer({ signal, onAnswering, onText }) {
        const passThrough = { operation, bytes: passed.bytes, headers, query, hidesUsage, onText };
        const call = { tenant, origin, own, messages: [], ...bounds, signal, passThrough };
        try {
          const { passed: answer } = await caller.call(
            { ...call, drains: onText !== undefined },
            { onAnswering: (sent) => onAnswering?.(passedHeaders(sent, isOwn)) },
          );
          if (answer === undefined) throw new Error('an answer was not passed through');
          return { text: answer.text, headers: passedHeaders(answer.headers, isOwn) };
        } catch (error) {
          throw errorOfAnswer(error, key?.item);
        }
      },
    };
  };
}

/** Names of members in a line of the log. */
const maxLogged = 20;
