import type { SharedV4Warning } from '@ai-sdk/provider';
import { LRUCache } from 'lru-cache';
import type { Adapter, ProviderSettings } from './adapter.ts';
import { parsed } from './members.ts';
import { droppedIn } from './package-answers.ts';
import { optionsOf } from './package-options.ts';
import type { ModelCall, ModelSettings } from './port.ts';

/** What a package leaves out of a call with given settings. */
interface LeftOut {
  /** By their names in `ModelCall`. */
  readonly unsupported: readonly string[];
  /** As the package names them. */
  readonly dropped: readonly string[];
  /** What shows the reasoning. */
  readonly shown: ProviderSettings | undefined;
}

/** The cached settings, and the max. characters of each. Those with long tools are not cached. */
const maxCachedSettings = 1_000;
const maxCachedText = 4_096;

/** The settings that packages leave out of calls, cached because a rehearsal costs as much as a call. */
export class DroppedSettings {
  /** By the JSON text of the settings. */
  readonly #cache = new LRUCache<string, LeftOut>({ max: maxCachedSettings });

  /** The settings that a call's model does not take, by their names in `ModelCall`. */
  async unsupported(settings: ModelSettings, adapter: Adapter): Promise<readonly string[]> {
    return (await this.#of(settings, adapter)).unsupported;
  }

  /** The settings, by the package's names, dropped from a call whose answer our own reader reads. */
  async dropped(call: ModelCall, adapter: Adapter): Promise<readonly string[]> {
    const { temperature, topP, stop, toolChoice, parallelToolCalls, responseFormat, reasoningEffort } = call;
    const settings = { temperature, topP, stop, toolChoice, parallelToolCalls, responseFormat, reasoningEffort };
    if (Object.values(settings).every((value) => value === undefined)) return [];
    const { provider, model, maxTokens, tools } = call;
    return (await this.#of({ provider, model, maxTokens, tools, ...settings }, adapter)).dropped;
  }

  /** The settings that show the reasoning of a call that asks for it. */
  async shown(call: ModelCall, adapter: Adapter): Promise<ProviderSettings | undefined> {
    const { showsReasoning = false, reasoningEffort, provider, model, maxTokens } = call;
    if (!showsReasoning || reasoningEffort === undefined || reasoningEffort === 'none') return undefined;
    return (await this.#of({ provider, model, maxTokens, reasoningEffort }, adapter)).shown;
  }

  async #of(settings: ModelSettings, adapter: Adapter): Promise<LeftOut> {
    const text = JSON.stringify(settings);
    const cached = this.#cache.get(text);
    if (cached !== undefined) return cached;
    const leftOut = await leftOutOf(settings, adapter);
    if (text.length <= maxCachedText) this.#cache.set(text, leftOut);
    return leftOut;
  }
}

async function leftOutOf(settings: ModelSettings, adapter: Adapter): Promise<LeftOut> {
  if (adapter.canBeModel?.(settings.model) === false) return { unsupported: [], dropped: [], shown: undefined };
  const thinking = await thinkingWithinCap(settings, adapter);
  if (thinking === 'no room') return { unsupported: ['reasoningEffort'], dropped: [], shown: undefined };
  const { warnings, body } = await dryRun(settings, adapter, thinking);
  const unsupported = [
    ...(adapter.lacks?.(settings) ?? []),
    ...(settings.responseFormat?.strict === true && adapter.enforcesFormat?.(body) === false ? ['strict'] : []),
    ...warnings.flatMap((warning) => settingOf(warning, settings)),
  ];
  return { unsupported, dropped: droppedIn(warnings), shown: adapter.reasoningShown?.(body) };
}

/**
 * The tokens that a call may use for thinking, so that thinking and answer together stay within its cap: at most 4/5
 * of it. Undefined where the package adds nothing to the cap; `no room` where it is not above the vendor's minimum.
 */
export async function thinkingWithinCap(
  settings: ModelSettings,
  adapter: Adapter,
): Promise<number | 'no room' | undefined> {
  const { maxTokens, reasoningEffort } = settings;
  const { thinkingBudget } = adapter;
  if (thinkingBudget === undefined || maxTokens === undefined || reasoningEffort === undefined) return undefined;
  const budget = thinkingBudget.in((await dryRun(settings, adapter)).body);
  if (budget === undefined) return undefined;
  if (maxTokens <= thinkingBudget.min) return 'no room';
  return Math.min(budget, Math.max(thinkingBudget.min, Math.floor(maxTokens * 0.8)));
}

/** The body that the package would send for a short message, and the settings that it leaves out. Sends nothing. */
async function dryRun(
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
    // The package cannot write the schema: it sends nothing, and the call is refused.
  }
  return { body, warnings };
}

/** The name in `ModelCall` of a setting that a package leaves out. */
function settingOf(warning: SharedV4Warning, { reasoningEffort }: ModelSettings): string[] {
  // The package uses the nearest effort. A client that wants no reasoning did not ask for any.
  if (warning.type === 'compatibility' && warning.feature === 'reasoning' && reasoningEffort === 'none') {
    return ['reasoningEffort'];
  }
  if (warning.type !== 'unsupported') return [];
  const names: Readonly<Record<string, string>> = { stopSequences: 'stop', reasoning: 'reasoningEffort' };
  return [names[warning.feature] ?? warning.feature];
}
