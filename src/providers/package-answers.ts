import type {
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  SharedV4Warning,
} from '@ai-sdk/provider';
import type { Adapter, Reasoning } from './adapter.ts';
import { answerLimits } from './answer-limits.ts';
import { withOriginals } from './json-placeholders.ts';
import { memberOf } from './members.ts';
import type { Answer, ModelCall, OnText, ToolCall, Usage } from './port.ts';

interface Generated {
  readonly content: readonly LanguageModelV4Content[];
  readonly finishReason: LanguageModelV4FinishReason;
  readonly warnings: readonly SharedV4Warning[];
  readonly providerMetadata?: unknown;
}

/** The answer as the provider package read it. Throws where the vendor reports a failure. */
export function answerOf(
  { content, finishReason: { unified, raw }, warnings, providerMetadata }: Generated,
  usage: Usage,
  adapter: Adapter,
): Answer {
  const text = content.flatMap((part) => (part.type === 'text' ? [withOriginals(part.text)] : [])).join('');
  const toolCalls = content.flatMap((part): ToolCall[] =>
    part.type === 'tool-call' && part.providerExecuted !== true
      ? [
          {
            id: part.toolCallId,
            name: part.toolName,
            input: withOriginals(part.input),
            ...signatureOf(part.providerMetadata),
          },
        ]
      : [],
  );
  const shown = content.flatMap((part) => (part.type === 'reasoning' ? [part.text] : [])).join('');
  const reasoning = adapter.signatureIn?.(content.flatMap(reasoningIn));
  const [first, ...others] = toolCalls;
  const finishReason = adapter.finishReasons?.[raw ?? ''] ?? unified;
  if (finishReason === 'error' || finishReason === 'interrupted') throw new Error('the answer failed');
  const refusedBecause = adapter.refusedBecause?.(raw, providerMetadata);
  const droppedSettings = droppedIn(warnings);
  return {
    text,
    // The signed reasoning precedes all of them.
    toolCalls:
      first === undefined || reasoning === undefined ? toolCalls : [{ ...first, signature: reasoning }, ...others],
    finishReason,
    usage,
    ...(shown === '' ? {} : { reasoning: shown }),
    ...(refusedBecause === undefined ? {} : { refusedBecause }),
    ...(droppedSettings.length === 0 ? {} : { droppedSettings }),
  };
}

/** The settings that the package dropped, by its names. */
export function droppedIn(warnings: readonly SharedV4Warning[]): string[] {
  return warnings.flatMap((warning) => (warning.type === 'unsupported' ? [warning.feature] : []));
}

/** Receives the parts of a streamed answer. The next part is read when the promise resolves. */
export interface PartReaders {
  readonly onText: OnText;
  readonly onReasoning: OnText;
  readonly onToolCall: NonNullable<ModelCall['onToolCall']>;
}

/** Reads a stream of a provider package to its end. Throws if it is truncated or exceeds a limit. */
export async function answerOfStream(
  parts: ReadableStream<LanguageModelV4StreamPart>,
  usage: () => Usage,
  adapter: Adapter,
  { onText, onReasoning, onToolCall }: PartReaders,
): Promise<Answer> {
  let warnings: readonly SharedV4Warning[] = [];
  const content: LanguageModelV4Content[] = [];
  const reasoning = new ReasoningOfStream(content);
  const toolCalls = new ToolCallsOfStream(adapter, onToolCall);
  let bytes = 0;
  const take = (text: string) => {
    bytes += Buffer.byteLength(text);
    if (bytes > answerLimits.streamedTextBytes) throw new Error('the text is too long');
  };
  for await (const part of parts) {
    switch (part.type) {
      case 'stream-start':
        warnings = part.warnings;
        break;
      case 'text-delta': {
        const text = withOriginals(part.delta);
        take(text);
        content.push({ type: 'text', text });
        if (text !== '') await onText(text);
        break;
      }
      case 'reasoning-start':
      case 'reasoning-end':
        reasoning.add(part.id, '', part.providerMetadata);
        break;
      case 'reasoning-delta':
        take(part.delta);
        reasoning.add(part.id, part.delta, part.providerMetadata);
        if (part.delta !== '') await onReasoning(part.delta);
        break;
      case 'tool-input-start':
        if (!adapter.sendsWholeCalls) await toolCalls.begin(part.id, part.toolName, reasoning.blocks);
        break;
      case 'tool-input-delta':
        await toolCalls.input(part.id, part.delta);
        break;
      case 'tool-call':
        content.push(part);
        await toolCalls.end(part, reasoning.blocks);
        break;
      case 'error':
        throw new Error('the stream reports an error');
      case 'finish':
        // A stream without the vendor's end marker was truncated.
        return answerOf({ ...part, content, warnings }, usage(), adapter);
    }
  }
  throw new Error('the stream was cut');
}

/** Joins the pieces of reasoning, in the order of the content. */
class ReasoningOfStream {
  readonly #content: LanguageModelV4Content[];
  readonly #texts = new Map<string, { text: string; metadata: object }>();
  readonly #places = new Map<string, number>();

  constructor(content: LanguageModelV4Content[]) {
    this.#content = content;
  }

  get blocks(): readonly Reasoning[] {
    return this.#content.flatMap(reasoningIn);
  }

  add(id: string, text: string, metadata: unknown): void {
    const known = this.#texts.get(id) ?? { text: '', metadata: {} };
    const signed = memberOf(metadata, 'anthropic');
    const block = {
      text: known.text + text,
      metadata: { ...known.metadata, ...(typeof signed === 'object' ? signed : {}) },
    };
    this.#texts.set(id, block);
    this.#content[this.#places.getOrInsert(id, this.#content.length)] = {
      type: 'reasoning',
      text: block.text,
      providerMetadata: { anthropic: { ...block.metadata } },
    };
  }
}

/** Passes tool calls on in pieces. */
class ToolCallsOfStream {
  /** By id: the indexes of the calls that have begun, and whether any input has been sent. */
  readonly #begun = new Map<string, { readonly index: number; hasInput: boolean }>();
  readonly #adapter: Adapter;
  readonly #onToolCall: PartReaders['onToolCall'];

  constructor(adapter: Adapter, onToolCall: PartReaders['onToolCall']) {
    this.#adapter = adapter;
    this.#onToolCall = onToolCall;
  }

  async begin(id: string, name: string, reasoning: readonly Reasoning[], metadata?: unknown): Promise<void> {
    const index = this.#begun.size;
    if (index >= answerLimits.toolCalls) throw new Error('too many tool calls');
    this.#begun.set(id, { index, hasInput: false });
    const signature = index === 0 ? this.#adapter.signatureIn?.(reasoning) : undefined;
    const signed = signature === undefined ? signatureOf(metadata) : { signature };
    await this.#onToolCall({ index, begun: { id, name, ...signed }, input: '' });
  }

  async input(id: string, piece: string): Promise<void> {
    const call = this.#begun.get(id);
    if (call === undefined || piece === '') return;
    call.hasInput = true;
    await this.#onToolCall({ index: call.index, begun: undefined, input: withOriginals(piece) });
  }

  async end(
    { toolCallId: id, toolName, input, providerMetadata }: Extract<LanguageModelV4StreamPart, { type: 'tool-call' }>,
    reasoning: readonly Reasoning[],
  ): Promise<void> {
    if (!this.#begun.has(id)) await this.begin(id, toolName, reasoning, providerMetadata);
    // Some vendors send the input of a call in one piece.
    if (this.#begun.get(id)?.hasInput === false) await this.input(id, input);
  }
}

/** The signed blocks, which alone the vendor takes back. */
function reasoningIn(part: LanguageModelV4Content): Reasoning[] {
  if (part.type !== 'reasoning') return [];
  const metadata = memberOf(part.providerMetadata, 'anthropic');
  const signed = ['signature', 'redactedData'].flatMap((name) => {
    const value = memberOf(metadata, name);
    return typeof value === 'string' && value !== '' ? [[name, value]] : [];
  });
  return signed.length === 0 ? [] : [{ text: part.text, metadata: { anthropic: Object.fromEntries(signed) } }];
}

function signatureOf(metadata: unknown): Pick<ToolCall, 'signature'> {
  const signature = memberOf(memberOf(metadata, 'google'), 'thoughtSignature');
  return typeof signature === 'string' ? { signature } : {};
}
