import type { Answer, ToolCall, ToolCallPiece, Usage } from '../../providers/port.ts';

/** The common members of all parts of an answer. `created` is in seconds since 1970. */
export interface AnswerHead {
  readonly id: string;
  readonly created: number;
  readonly model: string;
}

/** The id of a tool call for the client. */
export type IdOfToolCall = (call: Pick<ToolCall, 'id' | 'signature'>) => string;

const finishReasons: Readonly<Record<Answer['finishReason'], string>> = {
  stop: 'stop',
  length: 'length',
  'tool-calls': 'tool_calls',
  'content-filter': 'content_filter',
  // The format has no equivalent. Clients treat this one as incomplete, which the answer is.
  other: 'length',
};

/** A refusing answer stops normally, as in the first provider's own answers. */
function finishReasonOf({ finishReason, refusedBecause }: Answer): string {
  const isRefused = finishReason === 'content-filter' && refusedBecause !== undefined;
  return finishReasons[isRefused ? 'stop' : finishReason];
}

/** The body of a non-streamed answer. */
export function completionBody({ id, created, model }: AnswerHead, answer: Answer, idOf: IdOfToolCall) {
  const { text: content, reasoning, toolCalls, usage, refusedBecause: refused = null } = answer;
  return {
    id,
    object: 'chat.completion',
    created,
    model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: content === '' && (toolCalls.length > 0 || refused !== null) ? null : content,
          refusal: refused,
          annotations: [],
          ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
          ...(toolCalls.length === 0
            ? {}
            : {
                tool_calls: toolCalls.map((call) => ({
                  id: idOf(call),
                  type: 'function',
                  function: { name: call.name, arguments: call.input },
                })),
              }),
        },
        logprobs: null,
        finish_reason: finishReasonOf(answer),
      },
    ],
    ...usageMember(usage),
  };
}

/** Leaves out what the provider did not report. */
function usageMember(usage: Usage) {
  const { inputTokens, outputTokens, cachedTokens, cacheWriteTokens, reasoningTokens } = usage;
  if (inputTokens === undefined || outputTokens === undefined) return {};
  const ofPrompt = {
    ...(cachedTokens === undefined ? {} : { cached_tokens: cachedTokens }),
    ...(cacheWriteTokens === undefined ? {} : { cache_write_tokens: cacheWriteTokens }),
  };
  return {
    usage: {
      prompt_tokens: inputTokens,
      completion_tokens: outputTokens,
      total_tokens: inputTokens + outputTokens,
      ...(Object.keys(ofPrompt).length === 0 ? {} : { prompt_tokens_details: ofPrompt }),
      ...(reasoningTokens === undefined ? {} : { completion_tokens_details: { reasoning_tokens: reasoningTokens } }),
    },
  };
}

/** The events of a streamed answer. */
export function completionChunks({ id, created, model }: AnswerHead, includesUsage: boolean, idOf: IdOfToolCall) {
  const chunk = (choices: readonly object[], usage: object | null = null) =>
    event({ id, object: 'chat.completion.chunk', created, model, choices, ...(includesUsage ? { usage } : {}) });
  const delta = (part: object, finishReason: string | null = null) =>
    chunk([{ index: 0, delta: part, logprobs: null, finish_reason: finishReason }]);
  return {
    begin: () => delta({ role: 'assistant', content: '', refusal: null }),

    text: (text: string) => delta({ content: text }),

    /** The member that clients read reasoning from; the format itself has none. */
    reasoning: (text: string) => delta({ reasoning_content: text }),

    toolCall({ index, begun, input }: ToolCallPiece): string {
      const begin = begun && { id: idOf(begun), type: 'function' };
      const called = { ...(begun && { name: begun.name }), arguments: input };
      return delta({ tool_calls: [{ index, ...begin, function: called }] });
    },

    end(answer: Answer): string {
      const { refusedBecause } = answer;
      const refused = refusedBecause === undefined ? '' : delta({ refusal: refusedBecause });
      const last = refused + delta({}, finishReasonOf(answer));
      const { usage: figures } = usageMember(answer.usage);
      return `${last}${includesUsage && figures !== undefined ? chunk([], figures) : ''}data: [DONE]\n\n`;
    },
  };
}

export function event(content: object): string {
  return `data: ${JSON.stringify(content)}\n\n`;
}
