import { randomUUIDv7 } from 'node:crypto';
import type { CallEnd, CallStart } from '../providers/call-record.ts';
import type { ProviderName } from '../providers/port.ts';

/** An invented call, for pages about costs. */
export interface MadeUpCall {
  readonly call: CallStart;
  readonly end: CallEnd & { readonly usage: { readonly inputTokens: number; readonly outputTokens: number } };
}

const dayLength = 86_400_000;
const days = 30;
const models: readonly (readonly [ProviderName, string])[] = [
  ['openai', 'gpt-5.4-mini'],
  ['openai', 'gpt-5.4'],
  ['anthropic', 'claude-sonnet-4-6'],
  ['google', 'gemini-2.5-flash'],
];
const clients = ['demo.storefront', 'demo.back-office', 'demo.warehouse'];
const users = ['mia.schneider', 'jan.novak', 'jane.doe', 'aiko.tanaka', 'sam.okafor'];

/** Calls of the 30 days before `now` (milliseconds since 1970), deterministic; more on weekdays than on weekends. */
export function madeUpCalls(
  now: number,
  agentId: string,
  findPrice: (model: { provider: ProviderName; model: string }, at: number) => CallStart['price'],
): MadeUpCall[] {
  const random = randomNumbers();
  const pick = <Item>(items: readonly Item[]) => items[Math.floor(random() ** 1.7 * items.length)] as Item;
  const calls: MadeUpCall[] = [];
  for (let age = days; age > 0; age -= 1) {
    const weekday = new Date(now - age * dayLength).getUTCDay();
    const count = weekday % 6 === 0 ? 4 + 6 * random() : 12 + 16 * random();
    for (let n = 0; n < count; n += 1) {
      const at = Math.floor(now - age * dayLength + random() * dayLength);
      const [provider, model] = pick(models);
      const isChat = random() < 0.4;
      const call: CallStart = {
        id: idAt(at),
        at,
        operation: isChat ? 'chat' : 'openai',
        token: 'own',
        provider,
        model,
        clientId: pick(clients),
        ...(isChat ? { agentId } : { user: pick(users) }),
        price: findPrice({ provider, model }, at),
      };
      calls.push({ call, end: endOf(random) });
    }
  }
  return calls;
}

function endOf(random: () => number): MadeUpCall['end'] {
  const inputTokens = Math.floor(400 + 9_000 * random() ** 3);
  const usage = {
    inputTokens,
    cachedTokens: random() < 0.3 ? Math.floor(inputTokens * 0.6) : 0,
    outputTokens: Math.floor(60 + 1_500 * random() ** 2),
  };
  const durationMs = Math.floor(600 + usage.outputTokens * (6 + 6 * random()));
  return { usage, reported: usage, durationMs, firstTokenMs: Math.floor(durationMs / 5), finishReason: 'stop' };
}

/** A UUID of version 7 of this moment, since lists are in the order of ids. */
function idAt(at: number): string {
  const time = at.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}${randomUUIDv7().slice(13)}`;
}

/** Deterministic numbers from 0 to 1. */
function randomNumbers(): () => number {
  let state = 20_261;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}
