import type { SharedV4Warning } from '@ai-sdk/provider';
import { LRUCache } from 'lru-cache';
import type { Adapter } from './adapter.ts';
import { parsed } from './members.ts';
import { droppedIn } from './package-answers.ts';
import { optionsOf } from './package-options.ts';
import type { ModelCall, ModelSettings } from './port.ts';

/** What a package leaves out of a call with some settings. */
interface LeftOut {
  /** By their names in `ModelCall`. */
  readonly untaken: readonly string[];
  /** As the package names them. */
  readonly dropped: readonly string[];
}

/** Of settings whose answers are kept: how many, and the characters of each. Those with long tools are asked for each time. */
const maxKnownSettings = 1_000;
const maxKnownText = 4_096;

/** What packages leave out of calls. To ask a package costs as much as a call, and it says the same each time. */
export class LeftOutSettings {
  /** By the JSON text of the settings. */
  readonly #known = new LRUCache<string, LeftOut>({ max: maxKnownSettings });

  /** The settings that a call's model does not take, by their names in `ModelCall`. */
  async untaken(settings: ModelSettings, adapter: Adapter): Promise<readonly string[]> {
    return (await this.#of(settings, adapter)).untaken;
  }

  /** What the package has left out of a call whose answer it does not read, as it names them. All models of that format take a cap. */
  async dropped(call: ModelCall, adapter: Adapter): Promise<readonly string[]> {
    const { temperature, topP, stop, toolChoice, parallelToolCalls, responseFormat, reasoningEffort } = call;
    const settings = { temperature, topP, stop, toolChoice, parallelToolCalls, responseFormat, reasoningEffort };
    if (Object.values(settings).every((value) => value === undefined)) return [];
    const { provider, model, maxTokens, tools } = call;
    return (await this.#of({ provider, model, maxTokens, tools, ...settings }, adapter)).dropped;
  }

  async #of(settings: ModelSettings, adapter: Adapter): Promise<LeftOut> {
    const text = JSON.stringify(settings);
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const said = await leftOutOf(settings, adapter);
    if (text.length <= maxKnownText) this.#known.set(text, said);
    return said;
  }
}

async function leftOutOf(settings: ModelSettings, adapter: Adapter): Promise<LeftOut> {
  if (adapter.canBeModel?.(settings.model) === false) return { untaken: [], dropped: [] };
  const thinking = await thinkingWithinCap(settings, adapter);
  if (thinking === 'no room') return { untaken: ['reasoningEffort'], dropped: [] };
  const { warnings } = await rehearse(settings, adapter, thinking);
  const named = warnings.flatMap((warning) => settingOf(warning, settings));
  return { untaken: [...(adapter.lacks?.(settings) ?? []), ...named], dropped: droppedIn(warnings) };
}

/**
 * The tokens that a call may think with, so that thinking and answer together keep to its cap: at most four fifths of it. Undefined where
 * the package adds nothing to the cap, `no room` where the cap is not above the vendor's minimum.
 */
export async function thinkingWithinCap(
  settings: ModelSettings,
  adapter: Adapter,
): Promise<number | 'no room' | undefined> {
  const { maxTokens, reasoningEffort } = settings;
  const { thinkingBudget } = adapter;
  if (thinkingBudget === undefined || maxTokens === undefined || reasoningEffort === undefined) return undefined;
  const wanted = thinkingBudget.in((await rehearse(settings, adapter)).body);
  if (wanted === undefined) return undefined;
  if (maxTokens <= thinkingBudget.min) return 'no room';
  return Math.min(wanted, Math.max(thinkingBudget.min, Math.floor(maxTokens * 0.8)));
}

/** What the package would send, and what it would leave out. It is asked with a short message, and nothing is sent. */
async function rehearse(
  { messages: _, ...settings }: ModelSettings & Partial<Pick<ModelCall, 'messages'>>,
  adapter: Adapter,
  thinking?: number,
): Promise<{ body: unknown; warnings: readonly SharedV4Warning[] }> {
  let body: unknown;
  const keepBody: typeof fetch = async (_input, init) => {
    body = parsed(String(init?.body));
    return new Response('', { headers: { 'content-type': 'text/event-stream' } });
  };
  const access = { model: settings.model, apiKey: 'none', baseUrl: adapter.defaultBaseUrl, fetch: keepBody };
  const call = { ...settings, messages: [{ role: 'user' as const, content: 'x' }] };
  const warnings: SharedV4Warning[] = [];
  try {
    const model = await adapter.languageModel(access);
    const { stream } = await model.doStream(optionsOf(call, adapter, { thinking }));
    for await (const part of stream) {
      if (part.type !== 'stream-start') continue;
      warnings.push(...part.warnings);
      break;
    }
  } catch {
    // A schema that the package cannot write: it sends nothing then, and the call is refused.
  }
  return { body, warnings };
}

/** The name in `ModelCall` of a setting that a package leaves out. */
function settingOf(warning: SharedV4Warning, { reasoningEffort }: ModelSettings): string[] {
  // It takes the nearest effort. To a client that wants no reasoning any other is none that it asked for.
  if (warning.type === 'compatibility' && warning.feature === 'reasoning' && reasoningEffort === 'none') {
    return ['reasoningEffort'];
  }
  if (warning.type !== 'unsupported') return [];
  const names: Readonly<Record<string, string>> = { stopSequences: 'stop', reasoning: 'reasoningEffort' };
  return [names[warning.feature] ?? warning.feature];
}
