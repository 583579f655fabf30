import { AnnalsError } from '../errors.ts';
import type { Answer, Message, Tool, Usage } from '../providers/port.ts';
import { bytesForInput, fittingTurns, messagesOfTurn } from './chat-context.ts';
import { historyInstructions, historyTool, runHistoryTool } from './history-tool.ts';
import type { ModelCaller, Target } from './model-caller.ts';
import type { AskHistory } from './ports.ts';
import type { Severity } from './request-log.ts';
import type { EarlierTurns } from './turn-store.ts';

/** How often a model may have its tool calls run before it has to answer. */
const maxToolRounds = 8;

export interface Conversation {
  readonly target: Target;
  readonly userPrompt: string;
  readonly message: string;
  readonly offersHistory: boolean;
  readonly signal?: AbortSignal | undefined;
  readonly onText?: ((text: string) => Promise<void> | void) | undefined;
  /** The turns of the session that fit into so many bytes, and how many more there are. */
  earlier(maxBytes: number): Promise<EarlierTurns>;
  /** Before each call of the provider. */
  beforeCall(round: number): Promise<void>;
  report(usage: Usage): void;
  /** A line for the log; `guarded` where it tells of the change history. */
  note(severity: Severity, message: string, options?: { guarded: boolean }): void;
}

export interface Conversed {
  readonly text: string;
  /** Whether something of the change history is in it, directly or by way of earlier answers. */
  readonly fromHistory: boolean;
}

export interface ConverseOptions {
  models: ModelCaller;
  askHistory: AskHistory;
  now: () => number;
}

/** Asks the model, runs the tools that it asks for, and asks again, until it answers. */
export async function converse(options: ConverseOptions, conversation: Conversation): Promise<Conversed> {
  const { models, askHistory, now } = options;
  const { target, offersHistory, message, signal, note } = conversation;
  const { llmConfig, tenant } = target;
  const tools: readonly Tool[] = offersHistory ? [historyTool] : [];
  const system: Message[] = [conversation.userPrompt, offersHistory ? historyInstructions(now()) : '']
    .filter((content) => content !== '')
    .map((content) => ({ role: 'system', content }));
  const asked: Message[] = [{ role: 'user', content: message }];
  const maxBytes = bytesForInput(llmConfig, models.outputCap(llmConfig)) - Buffer.byteLength(JSON.stringify(tools));
  const { turns, total, withheld, ...earlier } = await conversation.earlier(maxBytes);
  if (withheld > 0) {
    note('INFO', `${withheld} earlier exchanges tell of the change history, which this client may not read: left out.`);
  }
  const readable = total - withheld;
  let known = readable;
  let { fromHistory } = earlier;
  const texts: string[] = [];

  for (let round = 0; ; round += 1) {
    const kept = fittingTurns(turns, [...system, ...asked], maxBytes);
    if (kept.length < known) {
      known = kept.length;
      note(
        'WARNING',
        `The context was cut: ${readable - known} of ${readable} earlier exchanges left out, the oldest.`,
      );
    }
    await conversation.beforeCall(round);
    const answer = await models.call(
      target,
      { messages: [...system, ...kept.flatMap(messagesOfTurn), ...asked], tools, signal, onText: textOf() },
      (usage) => report(usage, round),
    );
    if (answer.text !== '') texts.push(answer.text);
    if (answer.toolCalls.length === 0) {
      return { text: texts.join(separator).toWellFormed(), fromHistory };
    }
    if (round >= maxToolRounds) throw tooManyRounds();
    asked.push(...(await runTools(answer, round)));
  }

  /** What is streamed, joined, is the text of the answer. */
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

  function report(usage: Usage, round: number): void {
    const { inputTokens = 'unknown', outputTokens = 'unknown' } = usage;
    note('INFO', `Call ${round + 1} of the model: ${inputTokens} prompt tokens, ${outputTokens} completion tokens.`);
    conversation.report(usage);
  }

  async function runTools({ text, toolCalls }: Answer, round: number): Promise<Message[]> {
    const results: { id: string; name: string; output: string }[] = [];
    const isLast = round === maxToolRounds - 1;
    for (const call of toolCalls) {
      signal?.throwIfAborted();
      const { output, said, ...outcome } = await runHistoryTool(askHistory, call, {
        tenant,
        mayRead: offersHistory,
        signal,
      });
      fromHistory ||= outcome.fromHistory;
      // A model that has seen entries may quote them in what it asks next.
      note('INFO', `Tool round ${round + 1}: ${call.name.slice(0, 64)}, ${said}`, { guarded: fromHistory });
      const last = isLast ? '\nThis was the last round of tools: answer now with what you have.' : '';
      results.push({ id: call.id, name: call.name, output: output + last });
    }
    return [
      { role: 'assistant', content: text, toolCalls },
      { role: 'tool', results },
    ];
  }
}

const separator = '\n\n';

function tooManyRounds(): AnnalsError {
  return new AnnalsError('provider_error', `The model asked for its tools more than ${maxToolRounds} times.`);
}
