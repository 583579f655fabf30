import { AnnalsError } from '../../core/errors.ts';
import type { Answer, Message, OnText, Tool, ToolCall } from '../../providers/port.ts';
import { type SpentUsage, withText } from '../../providers/provider-caller.ts';
import { maxResultBytes } from '../../query/model-tool.ts';
import { type ChatTools, figuresOf, type LoggedToolCall } from '../mcp/chat-tools.ts';
import {
  bytesBeside,
  bytesForInput,
  bytesForTools,
  fittingTurns,
  messagesOfTurn,
  minResultBytes,
  noRoomForTools,
  shareOfWindow,
  windowOf,
} from './chat-context.ts';
import { historyInstructions, historyTool, runHistoryTool, type ToolOutcome } from './history-tool.ts';
import type { ModelCaller, Target } from './model-caller.ts';
import type { AskHistory, HistoryReader } from './ports.ts';
import type { Severity } from './request-log.ts';
import type { EarlierTurns } from './turn-store.ts';

/** The tool limits of one chat (contract 11). On reaching one the model gets a message. */
export const toolLimits = {
  /** Rounds of tool calls. After them the model has to answer. */
  rounds: 8,
  /** Tool calls per answer. */
  calls: 16,
  /** Bytes of all results together. */
  resultBytes: 256 * 1024,
  /** Bytes of a call's input, above the longest query. */
  inputBytes: 32 * 1024,
} as const;

/** Max. bytes of text of all answers in one chat. */
export const maxTextBytes = 2 * 1024 * 1024;

export interface Conversation {
  readonly target: Target;
  readonly userPrompt: string;
  readonly message: string;
  readonly offersHistory: boolean;
  readonly reader: HistoryReader;
  /** Tools of MCP servers. */
  readonly remote: ChatTools | undefined;
  /** Why earlier turns with change history are withheld. */
  readonly whyWithheld: string;
  readonly signal?: AbortSignal | undefined;
  readonly onText?: OnText | undefined;
  /** The turns of the session that fit into `maxBytes`, and the number of those that do not. */
  earlier(maxBytes: number): Promise<EarlierTurns>;
  /** Runs before each call of the provider. */
  beforeCall(round: number): Promise<void>;
  report(usage: SpentUsage): void;
  /** Adds a line to the log. `guarded`: it has data of the change history. `toolCall`: a call of an MCP server. */
  note(
    severity: Severity,
    message: string,
    options?: { guarded?: boolean; toolCall?: LoggedToolCall | undefined },
  ): void;
}

export interface ConversationResult {
  readonly text: string;
  /** Whether the conversation contains data of the change history, directly or through earlier answers. */
  readonly fromHistory: boolean;
}

export interface ConverseOptions {
  models: ModelCaller;
  askHistory: AskHistory;
  now: () => number;
}

/** Calls the model and runs the tools that it requests, until it answers. */
export async function converse(options: ConverseOptions, conversation: Conversation): Promise<ConversationResult> {
  const { models, askHistory, now } = options;
  const { target, offersHistory, reader, remote, message, signal, note } = conversation;
  const { llmConfig, tenant } = target;
  const tools: readonly Tool[] = [...(offersHistory ? [historyTool] : []), ...(remote?.tools ?? [])];
  const system = instructionsOf(conversation.userPrompt, offersHistory, remote?.instructions ?? '', now());
  const exchange: Message[] = [{ role: 'user', content: message }];
  for (const { text, isFine, call: toolCall } of remote?.notes ?? [])
    note(isFine ? 'INFO' : 'WARNING', text, { toolCall });
  const maxInput = bytesForInput(llmConfig, models.outputCap(llmConfig));
  const toolBytes = bytesOfTools(tools);
  const toolRoom = bytesForTools([...system, ...exchange], maxInput);
  if (tools.length > 0 && toolBytes > toolRoom) {
    note('WARNING', noRoomForTools('The tools', toolBytes, { room: toolRoom, window: windowOf(llmConfig) }));
  }
  const maxBytes = maxInput - toolBytes;
  const { turns, total, withheld, ...earlier } = await conversation.earlier(maxBytes);
  if (withheld > 0) {
    note('INFO', `${withheld} earlier exchanges tell of the change history, ${conversation.whyWithheld}: left out.`);
  }
  const readable = total - withheld;
  let turnCount = readable;
  let { fromHistory } = earlier;
  const texts: string[] = [];
  let textBytes = 0;
  let resultRoom: number = toolLimits.resultBytes;

  for (let round = 0; ; round += 1) {
    const fitting = fittingTurns(turns, [...system, ...exchange], maxBytes);
    if (fitting.length < turnCount) {
      turnCount = fitting.length;
      note(
        'WARNING',
        `The context was cut: ${readable - turnCount} of ${readable} earlier exchanges left out, the oldest.`,
      );
    }
    await conversation.beforeCall(round);
    const answer = await models.call(
      target,
      { messages: [...system, ...fitting.flatMap(messagesOfTurn), ...exchange], tools, signal, onText: textOf() },
      (usage) => report(usage, round),
    );
    noteEnd(answer, round);
    if (answer.text !== '') texts.push(answer.text);
    textBytes += Buffer.byteLength(answer.text);
    if (textBytes > maxTextBytes) {
      throw new AnnalsError('provider_error', `The model answered with more than ${maxTextBytes} bytes of text.`);
    }
    if (answer.toolCalls.length === 0) {
      const text = texts.join(separator).toWellFormed();
      withText(answer, text);
      return { text, fromHistory };
    }
    if (round >= toolLimits.rounds) {
      throw new AnnalsError('provider_error', `The model called its tools more than ${toolLimits.rounds} times.`);
    }
    exchange.push(...(await runTools(answer, round)));
  }

  /** The streamed parts, joined, are the text of the answer. */
  function textOf(): Conversation['onText'] {
    const { onText } = conversation;
    if (onText === undefined) return undefined;
    let begun = texts.length === 0;
    return async (text) => {
      if (!begun) await onText(separator);
      begun = true;
      await onText(text);
    };
  }

  function report(usage: SpentUsage, round: number): void {
    const { inputTokens = 'unknown', outputTokens = 'unknown', charged } = usage;
    const isKnown = usage.inputTokens !== undefined && usage.outputTokens !== undefined;
    const figures = `Call ${round + 1} of the model: ${inputTokens} prompt tokens, ${outputTokens} completion tokens.`;
    const ofQuota = `The quota was charged with ${charged?.input} prompt tokens and ${charged?.output} completion tokens.`;
    note('INFO', isKnown || charged === undefined ? figures : `${figures} ${ofQuota}`);
    conversation.report(usage);
  }

  /** Logs an incomplete answer, and settings of the agent that the provider did not get. */
  function noteEnd({ finishReason, droppedSettings = [] }: Answer, round: number): void {
    if (round === 0 && droppedSettings.length > 0) {
      note('WARNING', `The model does not take these settings, and they were left out: ${droppedSettings.join(', ')}.`);
    }
    if (finishReason === 'other') note('WARNING', 'The provider ended the answer before it was complete.');
    if (finishReason === 'length') note('WARNING', 'The answer was cut off: it reached its maximum of tokens.');
    if (finishReason === 'content-filter')
      note('WARNING', 'The filter of the provider held back the rest of the answer.');
  }

  async function runTool(call: ToolCall, windowRoom: number): Promise<ToolOutcome> {
    const refusal = resultRoom <= 0 ? noRoomForResults : windowRoom < minResultBytes ? noRoomInWindow : '';
    if (remote?.has(call.name)) {
      const room = Math.floor(Math.min(resultRoom, windowRoom, maxResultBytes));
      const error = refusal || (isLong(call) ? tooLongInput : '');
      const outcome = error === '' ? await remote.run(call, { maxBytes: room, signal }) : remote.refuse(call, error);
      return { output: outcome.output, logText: figuresOf(outcome.call), fromHistory: false, toolCall: outcome.call };
    }
    if (refusal !== '') return notRun(refusal);
    const room = { left: resultRoom, window: windowRoom };
    const run = { tenant, reader, mayRead: offersHistory, room, signal };
    return await runHistoryTool(askHistory, withShortInput(call), run);
  }

  async function runTools({ text, toolCalls: all, unreadToolCalls = 0 }: Answer, round: number): Promise<Message[]> {
    const results: { id: string; name: string; output: string }[] = [];
    const isLast = round === toolLimits.rounds - 1;
    const toolCalls = all.slice(0, toolLimits.calls);
    const leftOut = all.length - toolCalls.length + unreadToolCalls;
    const called: Message = { role: 'assistant', content: text, toolCalls: toolCalls.map(withShortInput) };
    let windowRoom = bytesBeside([...system, ...exchange, called], maxBytes) * shareOfWindow;
    if (leftOut > 0) note('WARNING', `Tool round ${round + 1}: ${leftOut} calls beyond ${toolLimits.calls} left out.`);
    for (const call of toolCalls) {
      signal?.throwIfAborted();
      const { output, logText, toolCall, ...outcome } = await runTool(call, windowRoom);
      resultRoom = outcome.usesUpRoom === true ? 0 : resultRoom - Buffer.byteLength(output);
      windowRoom -= Buffer.byteLength(output);
      fromHistory ||= outcome.fromHistory;
      // A model that has seen entries may quote them in its next tool call. For an MCP call the line has figures only.
      const guarded = fromHistory && toolCall === undefined;
      const severity = toolCall === undefined || toolCall.outcome === 'answered' ? 'INFO' : 'WARNING';
      note(severity, `Tool round ${round + 1}: ${call.name.slice(0, 64)}, ${logText}`, { guarded, toolCall });
      const last = isLast ? '\nThis was the last round of tools: answer now with what you have.' : '';
      results.push({ id: call.id, name: call.name, output: output + last });
    }
    const lastResult = results.at(-1);
    if (leftOut > 0 && lastResult !== undefined) {
      lastResult.output += `\n${leftOut} further calls were left out: an answer may have ${toolLimits.calls} at most.`;
    }
    return [called, { role: 'tool', results }];
  }
}

/** The system messages. `at`: milliseconds since 1970. */
export function instructionsOf(
  userPrompt: string,
  offersHistory: boolean,
  ofTools: string,
  at: number,
): readonly Message[] {
  return [userPrompt, offersHistory ? historyInstructions(at) : '', ofTools]
    .filter((content) => content !== '')
    .map((content) => ({ role: 'system', content }));
}

export function bytesOfTools(tools: readonly Tool[]): number {
  return Buffer.byteLength(JSON.stringify(tools));
}

const separator = '\n\n';

/** An input this long is not a query. The call goes back to the model without it. */
function withShortInput(call: ToolCall): ToolCall {
  return isLong(call) ? { ...call, input: '{"q":null}' } : call;
}

function isLong({ input }: ToolCall): boolean {
  return Buffer.byteLength(input) > toolLimits.inputBytes;
}

const tooLongInput = `The input of a call has at most ${toolLimits.inputBytes} bytes.`;

const noRoomForResults = `The results of this chat have reached their ${toolLimits.resultBytes / 1024} KiB. Answer with what you have.`;

const noRoomInWindow = 'The context of the model has no room for another result. Answer with what you have.';

function notRun(error: string): ToolOutcome {
  const why =
    error === noRoomInWindow
      ? "the model's context has no room for a result"
      : 'the results of this chat have reached their limit';
  return { output: JSON.stringify({ error }), logText: `not run: ${why}`, fromHistory: false };
}
