import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { createKey } from '../../../src/access/keys/key-store.ts';
import { createClient } from '../../../src/access/oauth/clients.ts';
import { perCallOfOthers } from '../../../src/desk/completions/input-bound.ts';
import { Quota, quotaLimits } from '../../../src/desk/completions/quota.ts';
import { defaultTimes } from '../../../src/desk/completions/service.ts';
import { perCall } from '../../../src/desk/formats/passed-request.ts';
import { createLogger } from '../../../src/http/logger.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { Random } from '../../support/oracle/random.ts';
import { overspent } from '../../support/server/budgets.ts';
import { wrongSums } from '../../support/server/calls.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { lookAtOnce } from '../../support/server/look-at-once.ts';
import { type ServiceProcesses, startServices } from '../../support/server/service-processes.ts';
import { chatFormat, messagesFormat, responsesFormat } from '../../support/vendor/vendor-formats.ts';
import { startVendor } from '../../support/vendor/vendor-server.ts';

const random = new Random();

/**
 * `ANNALS_QUOTA_RUNS=2000` is the size that uses up a whole quota, from three processes; the usual one starts with
 * little of it left.
 */
const runs = Number(process.env.ANNALS_QUOTA_RUNS ?? 90);
const wholeQuota = runs >= 2_000;
const atOnce = 64;
const processes = wholeQuota ? 3 : 2;
const cap = 4_096;
const sharedToken = `sk-shared-${randomBytes(12).toString('hex')}`;
const start = wholeQuota
  ? { input: 0, output: 0 }
  : // So little that the calls, an answer of which has some 600 tokens, use it up in all but one of a million runs.
    { input: quotaLimits.input - 40_000, output: quotaLimits.output - 15_000 };

/** The tenant's own key of Anthropic. */
const ownKey = `sk-own-${randomBytes(12).toString('hex')}`;

interface Tokens {
  input: number;
  output: number;
}

let secret: string;
/**
 * What the vendor has counted so far, and the part of it that clients got answers for: with the shared token, and with
 * the tenant's own key.
 */
let counted: Tokens;
let answered: Tokens;
let own: { counted: Tokens; answered: Tokens };

const database = await createTestDatabase();
const quota = new Quota({ pool: database.pool, db: database.db, logger: createLogger('silent') });
const vendor = await startVendor();
const services = await startAll();

beforeEach(() => {
  counted = { ...start };
  answered = { ...start };
  own = { counted: { input: 0, output: 0 }, answered: { input: 0, output: 0 } };
  vendor.behave(({ text, cap: allowed = 0, streaming, body, format }) => {
    // Answers of random length, most of them short, some as long as they may be.
    const usage = {
      input: 1 + random.below(text.length),
      output: Math.max(1, Math.ceil(allowed * random.next() ** 6)),
    };
    const sum = format === 'anthropic' ? own.counted : counted;
    sum.input += usage.input;
    sum.output += usage.output;
    const answer = { text: JSON.stringify(usage), delay: random.below(30), usage };
    if (!streaming) return { kind: 'answer', ...answer };
    const { events } = format === 'anthropic' ? messagesFormat : 'input' in body ? responsesFormat : chatFormat;
    return { kind: 'events', events: events(answer), every: random.below(6), delay: answer.delay };
  });
});

afterAll(async () => {
  refuseSecrets(await services.end());
  await vendor.close();
  await database.drop();
});

test('from several processes the quota is used up to its last token, and never beyond, and the records of calls agree', {
  timeout: 300_000,
}, async () => {
  const { tenant, token } = await newTenant('whole');
  let leftAtFirstRefusal: number | undefined;
  const statuses = await inParallel(async () => {
    const status = await complete(await services.next(), tenant, token);
    if (status === 403 && leftAtFirstRefusal === undefined) {
      leftAtFirstRefusal = quotaLimits.output - (await quota.state(tenant)).used.output;
    }
    return status;
  });

  expect([...new Set(statuses)].sort()).toEqual([200, 403]);
  expect(counted.input).toBeLessThanOrEqual(quotaLimits.input);
  expect(counted.output).toBeLessThanOrEqual(quotaLimits.output);
  expect(await quota.state(tenant)).toEqual({ used: counted, reserved: { input: 0, output: 0 } });
  expect(await recorded(tenant)).toEqual(since(counted));
  expect(await wrongSums(database.pool, tenant)).toEqual([]);
  expect(leftAtFirstRefusal).toBeLessThan(16);
  console.info(
    `${runs} completions: ${tally(statuses)}; left at the first refusal: ${leftAtFirstRefusal} output tokens`,
  );
});

test.each(['whole', 'streamed'])(
  'calls with an own key under a budget, %s, in flight in a killed process are charged once, in full, and the rest of the budget is used and not passed',
  async (form) => {
    const { tenant, token } = await newTenant(`own${form}`);
    await setOwnKey(tenant);
    const isStream = form === 'streamed';
    const content = 'x'.repeat(100);
    const request = { model: 'm', max_tokens: 50, stream: isStream, messages: [{ role: 'user', content }] };
    const reserved = { input: JSON.stringify(request).length + perCall + perCallOfOthers, output: 50 };
    const each = reserved.input + reserved.output;
    await database.pool.query(
      `insert into budget (tenant, id, version, document, fields, by, name, period, limit_tokens)
         values ($1, 'b', 1, '{}', '{}', 'all', '', 'lifetime', $2)`,
      [tenant, each * 10 + 7],
    );
    const call = async (baseUrl: string) => {
      const url = urlOf(baseUrl, tenant, ownPath);
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(request) });
      await response.text();
      return response.status;
    };
    vendor.behave({ kind: 'stall', usage: { input: 3, output: 2 } });
    const before = vendor.requests.length;
    const [first, second] = [await services.next(), await services.next()];
    const inFlight = [first, second, first, second, first, second].map((baseUrl) => call(baseUrl).catch(() => 'lost'));
    while (vendor.requests.length < before + inFlight.length) await sleep(5);
    await Promise.all([services.replace(0), services.replace(1)]);
    expect(new Set(await Promise.all(inFlight))).toEqual(new Set(['lost']));
    await database.pool.query('update completion_reservation set expires_at = now() where not charged');
    for (let time = 0; time < 3; time += 1) await quota.upkeep(lookAtOnce(database.db));
    expect(await recorded(tenant, 'own')).toEqual({ input: 6 * reserved.input, output: 6 * reserved.output });
    // Each uses all that it reserves, and four are left.
    vendor.behave({ kind: 'answer', usage: reserved });
    const statuses = await Promise.all(Array.from({ length: 12 }, async () => await call(await services.next())));
    expect(statuses.filter((status) => status === 200)).toHaveLength(4);
    expect(statuses.filter((status) => status === 429)).toHaveLength(8);
    expect(await recorded(tenant, 'own')).toEqual({ input: 10 * reserved.input, output: 10 * reserved.output });
    expect(await overspent(database.pool, tenant)).toEqual([]);
    expect(await wrongSums(database.pool, tenant)).toEqual([]);
    expect((await quota.state(tenant)).used).toEqual(start);
  },
);

test('with processes killed under way, and streams left at random bytes, neither it nor a budget of all, of a user or of each user is passed, also with an own key, and what was in flight is charged in full and recorded', {
  // With a whole quota, calls wait for what dead processes have reserved until their leases end.
  timeout: wholeQuota ? 900_000 : 300_000,
}, async () => {
  const { tenant, token } = await newTenant('killed');
  // Less than what is left of the quota, so that calls meet the budget first.
  const limit = wholeQuota ? 3_000_000 : 20_000;
  await database.pool.query(
    `insert into budget (tenant, id, version, document, fields, by, name, period, limit_tokens)
       values ($1, 'b', 1, '{}', '{}', 'all', '', 'lifetime', $2),
              ($1, 'jane', 1, '{}', '{}', 'user', 'jane', 'lifetime', $2 * 0.35),
              ($1, 'each', 1, '{}', '{}', 'each user', '', 'lifetime', $2 * 0.4)`,
    [tenant, limit],
  );
  const scopes = ['ai.completion_manage'];
  const keys = await Promise.all(
    ['jane', 'john'].map(async (user) => (await createKey(database.db, { tenant, scopes, user })).key),
  );
  await setOwnKey(tenant);
  const over = new AbortController();
  const kills = killNowAndThen(over.signal);
  const leasesEnd = wholeQuota ? Promise.resolve() : letLeasesEnd(over.signal);
  const statuses = await inParallel(async () => {
    const key = keys[random.below(3)];
    // Completions take no keys.
    const call = key === undefined && random.below(2) === 0 ? complete : stream;
    return await call(await services.next(), tenant, key ?? token, true).catch(() => 0);
  });
  over.abort();
  const killed = await kills;
  await leasesEnd;

  expect(counted.input).toBeLessThanOrEqual(quotaLimits.input);
  expect(counted.output).toBeLessThanOrEqual(quotaLimits.output);
  expect(killed).toBeGreaterThan(0);
  await drainsEnd();
  await database.pool.query('update completion_reservation set expires_at = now() where not charged');
  await quota.upkeep(lookAtOnce(database.db));
  const { used, reserved } = await quota.state(tenant);
  expect(await overspent(database.pool, tenant)).toEqual([]);
  expect(reserved).toEqual({ input: 0, output: 0 });
  expect(await recorded(tenant)).toEqual(since(used));
  expect(await wrongSums(database.pool, tenant)).toEqual([]);
  const dead = await chargedForTheDead(tenant);
  for (const kind of ['input', 'output'] as const) {
    expect(used[kind]).toBeGreaterThanOrEqual(counted[kind]);
    // What is not charged in full is settled to the token: whatever was answered, and nothing that was not counted.
    expect(used[kind] - dead[kind]).toBeGreaterThanOrEqual(answered[kind]);
    expect(used[kind] - dead[kind]).toBeLessThanOrEqual(counted[kind]);
  }
  // A call with an own key whose client leaves ends, without figures: it is charged in full.
  const ofOwn = await recorded(tenant, 'own');
  for (const kind of ['input', 'output'] as const) {
    expect(ofOwn[kind]).toBeGreaterThanOrEqual(own.counted[kind]);
  }
  console.info(
    `${runs} completions, ${killed} kills: ${tally(statuses)}; ${dead.calls} calls in flight charged in full with ` +
      `${dead.output} output tokens; counted by the vendor ${counted.output}, charged ${used.output}`,
  );
});

async function startAll(): Promise<ServiceProcesses> {
  return await startServices(processes, {
    DATABASE_URL: database.url,
    ANNALS_SECRET_KEY: Buffer.alloc(32, 7).toString('base64'),
    ANNALS_SHARED_PROVIDER_TOKEN: sharedToken,
    ANNALS_COMPLETION_MAX_TOKENS: String(cap),
    OPENAI_BASE_URL: vendor.baseUrl,
    ANTHROPIC_BASE_URL: vendor.baseUrl,
  });
}

async function newTenant(tenant: string): Promise<{ tenant: string; token: string }> {
  await createTenant(database.db, tenant);
  await database.pool.query('insert into completion_quota (tenant, input_used, output_used) values ($1, $2, $3)', [
    tenant,
    start.input,
    start.output,
  ]);
  const client = await createClient(database.db, { tenant, scope: 'ai.completion_manage' });
  secret = client.clientSecret;
  return { tenant, token: await tokenOf(client) };
}

async function tokenOf({ clientId, clientSecret }: { clientId: string; clientSecret: string }): Promise<string> {
  const response = await fetch(`${await services.next()}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: clientId,
      client_secret: clientSecret,
    }),
  });
  const { access_token: token } = (await response.json()) as { access_token: string };
  return token;
}

/** Gives the tenant a key of Anthropic. */
async function setOwnKey(tenant: string): Promise<void> {
  const client = await createClient(database.db, { tenant, scope: 'configuration.configuration_manage' });
  const response = await fetch(`${await services.next()}/configuration/${tenant}/configurations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await tokenOf(client)}`, 'content-type': 'application/json' },
    body: JSON.stringify([{ key: 'anthropicApiToken', value: ownKey }]),
  });
  expect(response.status).toBe(201);
}

const paths = ['chat/completions', 'responses'] as const;
/** With the tenant's own key. */
const ownPath = 'v1/messages';
type Path = (typeof paths)[number] | typeof ownPath;

function urlOf(baseUrl: string, tenant: string, path: Path): string {
  return path === ownPath ? `${baseUrl}/anthropic/${tenant}/${path}` : `${baseUrl}/openai/${tenant}/v1/${path}`;
}

/** As a completion, or on a path whose requests are passed through. */
async function complete(baseUrl: string, tenant: string, token: string, hasOwnKey = false): Promise<number> {
  const passed = random.below(3) === 0 ? undefined : random.pick<Path>(hasOwnKey ? [...paths, ownPath] : paths);
  const response =
    passed === undefined
      ? await post(`${baseUrl}/ai-service/${tenant}/completions`, token, {})
      : await post(urlOf(baseUrl, tenant, passed), token, modelOf(passed));
  const text = await response.text();
  noteAnswered(passed === undefined ? (JSON.parse(text).result ?? '') : text, passed);
  return response.status === 429 && isUsedUp(response, text) ? 403 : response.status;
}

function isUsedUp(response: Response, text: string): boolean {
  return text.includes('insufficient_quota') || response.headers.get('x-should-retry') === 'false';
}

/** The model of a path, and the cap that it needs. */
function modelOf(path: Path): object {
  return path === ownPath
    ? { model: 'claude-sonnet-4-5', max_tokens: 1 + random.below(cap) }
    : { model: 'gpt-5.4-mini' };
}

/** Adds the figures that the client was told. */
function noteAnswered(text: string, path?: string): void {
  const kinds = { input: /"(?:prompt_tokens|inputTokens|input_tokens|input)":(\d+)/, output: outputTold };
  const sum = path === ownPath ? own.answered : answered;
  for (const kind of ['input', 'output'] as const) sum[kind] += Number(kinds[kind].exec(text)?.[1] ?? 0);
}

const outputTold = /"(?:completion_tokens|outputTokens|output_tokens|output)":(\d+)/;

/** A stream that most clients leave after random bytes, some before the first one. */
async function stream(baseUrl: string, tenant: string, token: string, hasOwnKey = false): Promise<number> {
  const gone = new AbortController();
  const leaves = random.below(4);
  if (leaves === 0) setTimeout(() => gone.abort(), random.below(40));
  let bytes = leaves === 3 ? Number.POSITIVE_INFINITY : random.below(1_500);
  const { signal } = gone;
  const isPassed = token.startsWith('annals_') || random.below(2) === 0;
  const path = random.pick<Path>(hasOwnKey ? [...paths, ownPath] : paths);
  const options = path === 'chat/completions' ? { stream_options: { include_usage: true } } : {};
  let text = '';
  try {
    const response = isPassed
      ? await post(urlOf(baseUrl, tenant, path), token, { ...modelOf(path), stream: true, ...options }, signal)
      : await post(`${baseUrl}/ai-service/${tenant}/completions-stream`, token, {}, signal);
    const decoder = new TextDecoder();
    for await (const part of response.body ?? []) {
      text += decoder.decode(part, { stream: true });
      bytes -= part.length;
      if (bytes <= 0) gone.abort();
    }
    // The first event of a response has the figures too.
    if (isPassed && path === 'responses') noteAnswered(/data: \{"type":"response.completed".*/.exec(text)?.[0] ?? '');
    else if (isPassed && path === ownPath) noteAnswered(/data: \{"type":"message_delta".*/.exec(text)?.[0] ?? '', path);
    else noteAnswered(text);
    return response.status;
  } catch (error) {
    if (gone.signal.aborted) return left;
    throw error;
  }
}

/** Stands for a status where the client has left. */
const left = 499;

async function post(url: string, token: string, body: object, signal?: AbortSignal): Promise<Response> {
  const content = 'x'.repeat(1 + random.below(400));
  const asked = url.endsWith('/responses') ? { input: content } : { messages: [{ role: 'user', content }] };
  return await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...asked, ...body }),
    signal: signal ?? null,
  });
}

async function inParallel(work: () => Promise<number>): Promise<number[]> {
  const statuses: number[] = [];
  let begun = 0;
  const worker = async () => {
    while (begun < runs) {
      begun += 1;
      statuses.push(await work());
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return statuses;
}

/** Kills one after another, each as soon as calls are in flight again; answers how many. */
async function killNowAndThen(over: AbortSignal): Promise<number> {
  const most = wholeQuota ? 9 : 2;
  let killed = 0;
  while (!over.aborted && killed < most) {
    const { length } = vendor.requests;
    while (vendor.requests.length < length + 4 && !over.aborted) await sleep(5);
    if (over.aborted) break;
    if (wholeQuota) await sleep(500 + random.below(1_000));
    if (killed + processes < most) await services.replace(killed % processes);
    else await services.replaceForGood(killed % processes);
    killed += 1;
  }
  return killed;
}

/** Seconds that a reservation lives: the longest call and half a minute. */
const lifetime = defaultTimes.provider.total / 1000 + 30;

/**
 * Time passes quicker: whatever has been reserved for two seconds counts as left by a dead process, sent or not; others
 * wait for its room.
 */
async function letLeasesEnd(over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    await sleep(250);
    await database.pool.query(
      'update completion_reservation set expires_at = now() where not charged and expires_at < now() + make_interval(secs => $1)',
      [lifetime - 2],
    );
  }
}

/** Answers whose clients have left are read on for a moment. Then only reservations of dead processes are left. */
async function drainsEnd(): Promise<void> {
  const open = async () =>
    (await database.pool.query('select count(*) as calls from completion_reservation where not charged')).rows[0].calls;
  let [before, now] = [-1, await open()];
  while (now !== before) {
    before = now;
    await sleep(500);
    now = await open();
  }
}

/** The sums of the tenant's call records. */
async function recorded(tenant: string, key: 'shared' | 'own' = 'shared'): Promise<Tokens> {
  const { rows } = await database.pool.query<Tokens>(
    `select coalesce(sum(input_tokens), 0)::bigint as input, coalesce(sum(output_tokens), 0)::bigint as output
       from call_record where tenant = $1 and token = $2`,
    [tenant, key],
  );
  return rows[0] ?? { input: 0, output: 0 };
}

function since({ input, output }: Tokens) {
  return { input: input - start.input, output: output - start.output };
}

async function chargedForTheDead(
  tenant: string,
  key: 'shared' | 'own' = 'shared',
): Promise<Tokens & { calls: number }> {
  const { rows } = await database.pool.query<Tokens & { calls: number }>(
    `select count(*) as calls, coalesce(sum(input), 0)::bigint as input, coalesce(sum(output), 0)::bigint as output
       from completion_reservation where tenant = $1 and charged and call ->> 'token' = $2`,
    [tenant, key],
  );
  return rows[0] ?? { calls: 0, input: 0, output: 0 };
}

function refuseSecrets(log: string): void {
  expect(log).toContain('"msg":"request"');
  for (const hidden of [sharedToken, ownKey, secret]) expect(log).not.toContain(hidden);
}

function tally(statuses: readonly number[]): string {
  const counts = Map.groupBy(statuses, (status) => status);
  return [...counts]
    .map(([status, all]) => `${all.length} × ${{ 0: 'connection lost', [left]: 'left' }[status] ?? status}`)
    .join(', ');
}
