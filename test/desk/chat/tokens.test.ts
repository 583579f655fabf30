import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { dayOf } from '../../../src/http/days.ts';
import { Random } from '../../support/oracle/random.ts';
import { agentKey, allOf, callAgentic, putAgent } from '../../support/server/agents.ts';
import { letOthersWork } from '../../support/server/patience.ts';
import { startTestServer, type TestServer } from '../../support/server/server.ts';
import { type Behaviour, startVendor, type Vendor, type VendorRequest } from '../../support/vendor/vendor-server.ts';

const random = new Random();

// All of them: ANNALS_TOKEN_CHATS=1000 npx vitest run test/desk/chat/tokens.test.ts
const chats = Number(process.env.ANNALS_TOKEN_CHATS ?? 42);
const atOnce = 8;
const sessions = 20;
const tenant = 'acme';
const agents = ['openai', 'anthropic', 'google', 'shared'];
const kinds = ['chat', 'stream', 'gone', 'chat', 'job', 'stream', 'gone-stream'];

interface Log {
  id: string;
  sessionId: string;
  requestId: string;
  triggerAgentId: string;
  promptTokens: number;
  completionTokens: number;
}

let vendor: Vendor;
let servers: TestServer[];
let token: string;
/** The usage that the vendor sent for calls on own keys, to clients that read to the end. */
const sent = { input: 0, output: 0 };
/** What the shared token is to be charged with at least. */
const charged = { input: 0, output: 0 };

beforeAll(async () => {
  vendor = await startVendor();
  const environment = {
    OPENAI_BASE_URL: vendor.baseUrl,
    ANTHROPIC_BASE_URL: vendor.baseUrl,
    GOOGLE_BASE_URL: vendor.baseUrl,
    ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared',
  };
  const completionTimes = { provider: { silence: 60_000, total: 600_000 }, quotaWait: 60_000 };
  const first = await startTestServer({ environment, completionTimes });
  servers = [first, await startTestServer({ environment, completionTimes, database: first.database })];
  token = await first.token(tenant);
  for (const provider of agents) {
    const llmConfig = provider === 'shared' ? { provider } : { provider, model: 'm', apiKey: agentKey };
    await putAgent(first, { tenant, token, id: provider }, { llmConfig, nativeTools: ['change-history'] });
  }
});

afterAll(async () => {
  for (const server of servers.toReversed()) await server.close();
  await vendor.close();
});

test('request logs, session logs, records of calls, what the vendor sent and what the quota was charged agree to the token', {
  timeout: 600_000,
}, async () => {
  const [first] = servers;
  if (first === undefined) throw new Error('there is no server');
  const began = Date.now();
  const seen = { answered: 0, failed: 0, gone: 0, streamed: 0, tools: 0, jobs: 0 };
  vendor.behave(behave);
  const ids = Array.from({ length: sessions }, () => randomUUID());
  let begun = 0;
  const worker = async () => {
    while (begun < chats) {
      const turn = begun++;
      await oneChat(turn, random.pick(ids));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  const logged = async () => (await first.database.pool.query('select from agent_request_log')).rowCount;
  await until(async () => (await logged()) === chats);

  const requests = await allOf<Log>(first, { tenant, token, path: '/logs/requests' });
  const sums = await allOf<Log>(first, { tenant, token, path: '/logs/sessions' });
  const withOwnKeys = sum(requests.filter(({ triggerAgentId }) => triggerAgentId !== 'shared'));
  expect(withOwnKeys).toEqual(sent);
  expect(sum(sums)).toEqual(sum(requests));
  for (const session of sums) {
    const own = requests.filter(({ sessionId }) => sessionId === session.id);
    expect({ input: session.promptTokens, output: session.completionTokens }).toEqual(sum(own));
  }
  const { used, reserved } = await first.context.completions.quota.state(tenant);
  expect(reserved).toEqual({ input: 0, output: 0 });
  expect(sum(requests.filter(({ triggerAgentId }) => triggerAgentId === 'shared'))).toEqual(used);
  expect(used.input).toBeGreaterThanOrEqual(charged.input);
  expect(used.output).toBeGreaterThanOrEqual(charged.output);
  // The use of a day is both: the tokens of the tenant's own keys, and what counted against the quota.
  const days = await first.context.usage.read(tenant, { first: dayOf(began), last: dayOf(Date.now()) });
  expect({
    input: days.reduce((total, day) => total + day.inputTokens, 0),
    output: days.reduce((total, day) => total + day.outputTokens, 0),
  }).toEqual({ input: withOwnKeys.input + used.input, output: withOwnKeys.output + used.output });
  const { rows } = await first.database.pool.query<{ agent: string; input: number; output: number }>(
    `select agent, sum(input_tokens)::bigint as input, sum(output_tokens)::bigint as output from call_record
       where tenant = $1 group by agent order by agent`,
    [tenant],
  );
  for (const { agent, ...recorded } of rows) {
    expect({ agent, ...recorded }).toEqual({ agent, ...sum(requests.filter((log) => log.triggerAgentId === agent)) });
  }
  expect(rows.map(({ agent }) => agent)).toEqual(['anthropic', 'google', 'openai', 'shared']);
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(0);
  console.info(
    `${chats} chats: ${JSON.stringify(seen)}; ${sum(requests).input} prompt and ${sum(requests).output} completion tokens`,
  );

  async function oneChat(turn: number, sessionId: string): Promise<void> {
    const server = servers[turn % servers.length];
    if (server === undefined) throw new Error('there is no server');
    // In turn, so that a few chats have all of them.
    const agentId = agents[Math.floor(turn / kinds.length) % agents.length] ?? '';
    const kind = kinds[turn % kinds.length] ?? '';
    const call = {
      tenant,
      token,
      headers: { 'session-id': sessionId },
      path: kind.includes('stream') ? '/chat-stream' : '/chat',
    };
    const message = `turn ${turn} ${kind}`;
    const body = { agentId, message };
    if (kind === 'job') {
      seen.jobs += 1;
      await callAgentic(server, { ...call, path: '/chat-async' }, body);
      return;
    }
    if (kind === 'gone' || kind === 'gone-stream') {
      seen.gone += 1;
      const gone = new AbortController();
      const request = server.call(`/ai-service/${tenant}/agentic${call.path}`, {
        token,
        signal: gone.signal,
        headers: { ...call.headers },
        json: body,
      });
      const ended = request.then((partial) => partial.text()).catch(() => {});
      // The vendor hangs in the first or the second round; earlier answers count.
      await until(async () => hanging.has(message), 5);
      // What the vendor wrote by then has to be read before the client goes.
      await letOthersWork(100);
      gone.abort();
      await ended;
      return;
    }
    const response = await callAgentic(server, call, body);
    const text = await response.text();
    if (kind === 'stream') seen.streamed += 1;
    if (response.status === 200 && !text.includes('event: error')) seen.answered += 1;
    else seen.failed += 1;
    if (toolRounds.has(message)) seen.tools += 1;
  }
});

const hanging = new Set<string>();
const toolRounds = new Map<string, number>();

/** A vendor that answers and fails at random, and counts what it has sent. */
function behave(request: VendorRequest): Behaviour {
  const message = /turn \d+ [a-z-]+(?!.*turn \d)/s.exec(request.text)?.[0] ?? '';
  const usage = { input: 1 + random.below(500), output: 1 + random.below(200) };
  const delay = random.below(10);
  const rounds = toolRounds.get(message) ?? 0;
  const toolCall = {
    id: randomUUID(),
    name: 'change-history',
    input: { q: random.pick(['entity:agent', 'colour:red']) },
  };
  if (rounds < 4 && random.next() < 0.4) {
    toolRounds.set(message, rounds + 1);
    return counted(request, { kind: 'answer', toolCall, usage, delay });
  }
  if (message.includes('gone')) {
    hanging.add(message);
    return random.pick([true, false]) ? { kind: 'hang' } : counted(request, { kind: 'stall', usage });
  }
  return random.pick<() => Behaviour>([
    () => counted(request, { kind: 'answer', text: 'an answer of some words', usage, delay }),
    () => counted(request, { kind: 'answer', text: 'another one', usage, delay }),
    () => counted(request, { kind: 'answer', text: 'and a third', usage, delay }),
    () => counted(request, { kind: 'cut', usage }),
    () => ({ kind: 'garbage' }),
    () => ({ kind: 'status', status: 429 }),
    () => {
      // An error that has figures.
      add(request, usage);
      return { kind: 'status', status: 500, body: { usage: figuresOf(request, usage) } };
    },
  ])();
}

function counted(
  request: VendorRequest,
  behaviour: Behaviour & { usage: { input: number; output: number } },
): Behaviour {
  const { usage } = behaviour;
  if (behaviour.kind === 'answer') add(request, usage);
  // A cut stream reports the usage of its first half; a cut body is no longer JSON and reports none.
  else if (request.streaming && request.format === 'anthropic') add(request, { input: usage.input, output: 1 }, false);
  else if (request.streaming && request.format === 'google') add(request, usage, false);
  return behaviour;
}

function add(request: VendorRequest, { input, output }: { input: number; output: number }, settles = true): void {
  const isShared = request.headers.authorization === 'Bearer sk-shared';
  if (isShared && !settles) return;
  const of = isShared ? charged : sent;
  of.input += input;
  of.output += output;
}

function figuresOf({ format }: VendorRequest, { input, output }: { input: number; output: number }): object {
  if (format === 'openai') return { prompt_tokens: input, completion_tokens: output };
  if (format === 'anthropic') return { input_tokens: input, output_tokens: output };
  return { promptTokenCount: input, candidatesTokenCount: output };
}

function sum(logs: readonly Log[]): { input: number; output: number } {
  return {
    input: logs.reduce((total, { promptTokens }) => total + promptTokens, 0),
    output: logs.reduce((total, { completionTokens }) => total + completionTokens, 0),
  };
}

async function until(done: () => Promise<boolean>, pause = 50): Promise<void> {
  const end = performance.now() + 120_000;
  while (!(await done())) {
    if (performance.now() > end) throw new Error('it did not come to pass');
    await sleep(pause);
  }
}
