import type { Client, ProtocolError, SdkHttpError } from '@modelcontextprotocol/client';
import { TimeSlice } from '../../core/fairness/time-slice.ts';
import { loadPart, productVersion } from '../../core/package-folder.ts';
import type { HttpClient } from '../../outbound/http-client.ts';
import { startDeadline } from '../../providers/deadline.ts';
import { memberOf } from '../../providers/members.ts';
import { ToolExchange, type ToolFault, toolAnswerLimits, toolFetch } from '../../providers/tool-fetch.ts';
import { textOfAnswer } from './answer-text.ts';
import { offeredTools, readDefinition, type ToolOffer, type UnreadableTool } from './tool-definition.ts';

export interface ToolServerAddress {
  readonly name: string;
  readonly url: string;
  /** Plain text. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The cost of a call, successful or not. */
export interface ToolCallFigures {
  /** Bytes of the server's answers. */
  readonly bytes: number;
  /** Milliseconds. */
  readonly duration: number;
}

/** An MCP call without an answer. The message may be the server's own: data for the model, and not to be logged. */
export class ToolFailure extends Error {
  readonly fault: ToolFault;
  readonly figures: ToolCallFigures;

  constructor(fault: ToolFault, figures: ToolCallFigures, message = wordsOfFault[fault]) {
    super(message);
    this.name = 'ToolFailure';
    this.fault = fault;
    this.figures = figures;
  }
}

const wordsOfFault: Readonly<Record<ToolFault, string>> = {
  unreachable: 'The server cannot be reached.',
  timeout: `The server did not answer within ${toolAnswerLimits.time / 1_000} s.`,
  too_large: 'The answer of the server is too large.',
  bad_answer: 'The server gave no usable answer.',
  refused: 'The server refuses the call.',
  cancelled: 'The call was cancelled.',
};

export interface ToolAnswer {
  readonly text: string;
  /** Whether the tool reports a failure. */
  readonly isError: boolean;
  readonly figures: ToolCallFigures;
}

/** A connection to an MCP server. Its calls run one at a time. */
export interface ToolServer {
  readonly offer: ToolOffer;
  readonly figures: ToolCallFigures;
  /** Throws ToolFailure. */
  call(tool: string, input: Record<string, unknown>, signal?: AbortSignal): Promise<ToolAnswer>;
  close(): Promise<void>;
}

/** Connects to MCP servers. */
export type OpenToolServer = (address: ToolServerAddress, signal?: AbortSignal) => Promise<ToolServer>;

/** Max. pages of a list of tools. */
const maxPages = 16;

/**
 * Connects and reads the server's tools, in revision 2026-07-28, or else 2025-11-25 or earlier. Declares no capability,
 * which declines elicitation and sampling. `time`: milliseconds of one call.
 */
export function createOpenToolServer(connections: HttpClient, time: number = toolAnswerLimits.time): OpenToolServer {
  return async ({ name, url, headers }, signal) => {
    // Loaded with the first server, because few processes need it.
    const sdk = await loadPart(() => import('@modelcontextprotocol/client'));
    let exchange = new ToolExchange();
    const client = new sdk.Client(
      { name: 'annals', version: productVersion() },
      {
        capabilities: {},
        versionNegotiation: { mode: 'auto' },
        inputRequired: { autoFulfill: false },
        listMaxPages: maxPages,
      },
    );

    async function timed<Result>(
      work: (options: { signal: AbortSignal; timeout: number }) => Promise<Result>,
      caller: AbortSignal | undefined,
    ): Promise<{ result: Result; figures: ToolCallFigures }> {
      const used = new ToolExchange();
      exchange = used;
      const began = performance.now();
      const deadline = startDeadline({ silence: time, total: time }, caller);
      const figuresNow = () => ({ bytes: used.bytes, duration: Math.round(performance.now() - began) });
      try {
        const result = await work({ signal: AbortSignal.any([deadline.signal, used.signal]), timeout: 2 * time });
        return { result, figures: figuresNow() };
      } catch (error) {
        const stopped = deadline.reason();
        const fault =
          stopped === 'aborted'
            ? 'cancelled'
            : (stopped ?? used.fault ?? (isRefusal(error, sdk) ? 'refused' : 'bad_answer'));
        const message = fault === 'refused' && error instanceof sdk.ProtocolError ? error.message : undefined;
        throw new ToolFailure(fault, figuresNow(), message);
      } finally {
        deadline.end();
      }
    }

    const transport = new sdk.StreamableHTTPClientTransport(new URL(url), {
      fetch: toolFetch(connections, () => exchange, time),
      requestInit: { headers: { ...headers }, redirect: 'manual' },
      reconnectionOptions: {
        maxRetries: 0,
        initialReconnectionDelay: 0,
        maxReconnectionDelay: 0,
        reconnectionDelayGrowFactor: 1,
      },
    });
    const unreadable: UnreadableTool[] = [];
    readResults(transport, unreadable);
    try {
      const { result, figures } = await timed(async (options) => {
        await client.connect(transport, options);
        return await definitionsOf(client, options);
      }, signal);
      // The package has just parsed the list, which takes milliseconds.
      await new TimeSlice().rest();
      return {
        offer: { tools: await offeredTools(name, result), unreadable },
        figures,
        async call(tool, input, caller) {
          const { result: answer, figures: ofCall } = await timed(
            async (options) => await client.callTool({ name: tool, arguments: input }, options),
            caller,
          );
          const [block] = answer.content;
          const text = block?.type === 'text' ? block.text : '';
          return { text, isError: answer.isError === true, figures: ofCall };
        },
        close: async () => await client.close(),
      };
    } catch (error) {
      await client.close();
      throw error;
    }
  };
}

async function definitionsOf(client: Client, options: { signal: AbortSignal; timeout: number }) {
  if (client.getServerCapabilities()?.tools === undefined) return [];
  return (await client.listTools({}, options)).tools;
}

function isRefusal(
  error: unknown,
  sdk: { ProtocolError: typeof ProtocolError; SdkHttpError: typeof SdkHttpError },
): boolean {
  return error instanceof sdk.ProtocolError || error instanceof sdk.SdkHttpError;
}

/** A transport of the protocol's package, as far as used here. */
interface Receiver {
  onmessage?: ((...received: never[]) => void) | undefined;
}

/**
 * Removes malformed parts from results, because the package would reject a whole list for one tool and a whole answer
 * for one block. Keeps the members of tools that Annals uses, and the text of answers. `unreadable` gets the removed
 * tools.
 */
function readResults(transport: Receiver, unreadable: UnreadableTool[]): void {
  let receive: ((message: unknown, ...more: unknown[]) => void) | undefined;
  Object.defineProperty(transport, 'onmessage', {
    get: () => receive && ((message: unknown, ...more: unknown[]) => receive?.(readable(message, unreadable), ...more)),
    set(next: typeof receive) {
      receive = next;
    },
  });
}

function readable(message: unknown, unreadable: UnreadableTool[]): unknown {
  const result = memberOf(message, 'result');
  const [tools, content] = [memberOf(result, 'tools'), memberOf(result, 'content')];
  if (Array.isArray(tools)) {
    const definitions = tools.flatMap((tool: unknown, index) => {
      const read = readDefinition(tool, index);
      if (!('fault' in read)) return [read];
      unreadable.push(read);
      return [];
    });
    return { ...Object(message), result: { ...Object(result), tools: definitions } };
  }
  if (Array.isArray(content)) {
    const { structuredContent, ...rest } = Object(result);
    const text = textOfAnswer(content, structuredContent);
    const isError = memberOf(result, 'isError') === true;
    return { ...Object(message), result: { ...rest, isError, content: [{ type: 'text', text }] } };
  }
  return message;
}
