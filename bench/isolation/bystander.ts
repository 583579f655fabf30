import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../../test/support/oracle/random.ts';
import { startVendor } from '../../test/support/vendor/vendor-server.ts';
import { quantile } from '../figures.ts';

// The bystander, in a process of its own: a tenant with ordinary calls, two at a time and some 60 a second, that starts
// a chat and an export every second. Its parent sends `{ seconds }` and gets what it saw.
const [baseUrl = '', tenant = '', token = '', clientId = '', clientSecret = ''] = process.argv.slice(2);
const random = new Random();
const vendor = await startVendor();
/** Milliseconds after which a call counts as an error. */
const patience = 30_000;

export interface Seen {
  calls: number;
  p50: number;
  p95: number;
  p99: number;
  worst: number;
  errors: number;
  /** The longest time until a chat's model was called (milliseconds); null if none was. */
  chatBegins: number | null;
  /** The longest time from the call of an export of 200 entries to its end (milliseconds); null if none ended. */
  exportDone: number | null;
  /** How often each error was seen. */
  faults: Record<string, number>;
}

const calls: Record<string, () => Promise<Response>> = {
  history: () => get(`/changelog/${tenant}/changelogs?q=entity:product+actor:"Person+${random.below(10)}"`),
  'history, all': () => get(`/changelog/${tenant}/changelogs?page=${1 + random.below(20)}&size=50`),
  instances: () => get(`/schema/${tenant}/custom-entities/ITEM/instances?pageSize=20`),
  instance: () => get(`/schema/${tenant}/custom-entities/ITEM/instances/i${random.below(20)}`),
  write: () =>
    send('PUT', `/schema/${tenant}/custom-entities/ITEM/instances/i${random.below(20)}`, { n: random.below(1_000) }),
  configuration: () => get(`/configuration/${tenant}/configurations`),
  agents: () => get(`/ai-service/${tenant}/agentic/agents`),
  token: () =>
    call('/oauth/token', {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: clientId,
        client_secret: clientSecret,
      }),
    }),
  health: () => call('/health/ready', {}),
};
const names = Object.keys(calls);

await prepare();
process.on('message', async ({ seconds }: { seconds: number }) => process.send?.(await watch(seconds * 1_000)));
process.send?.('ready');

async function prepare(): Promise<void> {
  await send('POST', `/schema/${tenant}/custom-entities`, { id: 'ITEM', name: { en: 'Item' } });
  for (let id = 0; id < 20; id += 1) {
    await send('PUT', `/schema/${tenant}/custom-entities/ITEM/instances/i${id}`, { n: id });
  }
  await send('POST', `/configuration/${tenant}/configurations`, [{ key: 'colour', value: 'red' }]);
  const llmConfig = { provider: 'self_hosted', model: 'm', apiKey: 'sk-own', baseUrl: `${vendor.baseUrl}/v1` };
  const agent = await send('PUT', `/ai-service/${tenant}/agentic/agents/desk`, { name: { en: 'Desk' }, llmConfig });
  if (agent.status >= 300) throw new Error(`no agent: ${agent.status}`);
}

async function watch(milliseconds: number): Promise<Seen> {
  const end = performance.now() + milliseconds;
  const took: number[] = [];
  const chats: number[] = [];
  const exported: number[] = [];
  const faults: Record<string, number> = {};
  const note = (what: string, error: unknown) => {
    const fault = `${what}: ${error instanceof Error ? error.message : String(error)}`;
    faults[fault] = (faults[fault] ?? 0) + 1;
  };
  const worker = async () => {
    while (performance.now() < end) {
      const name = random.pick(names);
      const begun = performance.now();
      await calls[name]?.().catch((error: unknown) => note(name, error));
      took.push(performance.now() - begun);
      await sleep(20);
    }
  };
  const jobs = async () => {
    while (performance.now() < end) {
      const next = performance.now() + 1_000;
      await Promise.all([
        chat().then(
          (time) => chats.push(time),
          (error: unknown) => note('chat', error),
        ),
        exportAll().then(
          (time) => exported.push(time),
          (error: unknown) => note('export', error),
        ),
      ]);
      await sleep(Math.max(0, next - performance.now()));
    }
  };
  await Promise.all([worker(), worker(), jobs()]);
  const errors = Object.values(faults).reduce((sum, count) => sum + count, 0);
  return {
    calls: took.length,
    p50: quantile(took, 0.5),
    p95: quantile(took, 0.95),
    p99: quantile(took, 0.99),
    worst: quantile(took, 1),
    errors,
    chatBegins: quantile(chats, 1),
    exportDone: quantile(exported, 1),
    faults,
  };
}

/** Milliseconds from the call until the model is called. */
async function chat(): Promise<number> {
  const message = `Hello ${randomUUID()}`;
  const begun = performance.now();
  const called = Promise.withResolvers<number>();
  vendor.behave(({ text }) => {
    if (text.includes(message)) called.resolve(performance.now() - begun);
    return { kind: 'answer' };
  });
  await send('POST', `/ai-service/${tenant}/agentic/chat-async`, { agentId: 'desk', message });
  return await orLate(called.promise);
}

async function exportAll(): Promise<number> {
  const begun = performance.now();
  const made = await send('POST', `/ai-service/${tenant}/jobs`, {
    type: 'EXPORT',
    q: 'actor:"Person 1"',
    format: 'CSV',
  });
  const { jobId } = (await made.json()) as { jobId: string };
  while (performance.now() - begun < patience) {
    const job = (await (await get(`/ai-service/${tenant}/jobs/${jobId}`)).json()) as { status: string };
    if (job.status === 'success') return performance.now() - begun;
    if (job.status !== 'in_progress') throw new Error(job.status);
    await sleep(50);
  }
  throw new Error('late');
}

async function orLate<Value>(work: Promise<Value>): Promise<Value> {
  const late = sleep(patience, undefined, { ref: false }).then(() => {
    throw new Error('late');
  });
  return await Promise.race([work, late]);
}

function get(path: string): Promise<Response> {
  return call(path, { headers: { authorization: `Bearer ${token}` } });
}

function send(method: string, path: string, body: unknown): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  return call(path, { method, headers, body: JSON.stringify(body) });
}

/** The whole answer; rejects where it is an error or late. */
async function call(path: string, options: RequestInit): Promise<Response> {
  const response = await fetch(`${baseUrl}${path}`, { ...options, signal: AbortSignal.timeout(patience) });
  const text = await response.text();
  if (response.status >= 400 && response.status !== 409) throw new Error(`${response.status} ${text.slice(0, 120)}`);
  return new Response(text === '' ? null : text, { status: response.status });
}
