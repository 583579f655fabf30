import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { Database } from '../../src/postgres/database.ts';
import { makeTenant } from '../server.ts';
import { basicOf, type Counts } from '../service.ts';

/** What the clients of a tenant share. */
export interface Caller {
  readonly tenant: string;
  readonly service: string;
  readonly recorder: string;
  /** Basic credentials of a client with every scope. */
  readonly basic: string;
  /** Counts outcomes by operation. */
  readonly outcomes: Counts;
  /** Aborted when the load is over. */
  readonly over: AbortSignal;
  readonly acknowledged: Acknowledged;
}

/** What was acknowledged to a tenant's clients. */
export interface Acknowledged {
  /** Ids of changes. */
  readonly changes: string[];
  /** Writes of an instance: acknowledged, and with an unknown outcome. */
  writes: number;
  unknownWrites: number;
  chats: number;
}

/** A client with a token, which it renews when it is refused. */
export class Session {
  readonly #caller: Caller;
  #token: string | undefined;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Calls the service and reads the whole body. Returns undefined where the connection broke. */
  async call(
    operation: string,
    path: string,
    method = 'GET',
    body?: object,
  ): Promise<{ status: number; text: string } | undefined> {
    const { outcomes, service } = this.#caller;
    try {
      this.#token ??= await this.#grant();
      const response = await fetch(`${service}${path}`, {
        method,
        headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(120_000),
      });
      const text = await response.text();
      if (response.status === 401) this.#token = undefined;
      const retry = response.headers.get('retry-after');
      const detail = response.status < 400 ? '' : ` ${text.slice(0, 120)}${retry ? `, Retry-After: ${retry}` : ''}`;
      outcomes.add(`${operation}: ${response.status}${detail}`);
      return { status: response.status, text };
    } catch (error) {
      outcomes.add(`${operation}: ${error instanceof DOMException ? 'no answer in 120 s' : 'connection broken'}`);
      return undefined;
    }
  }

  async #grant(): Promise<string | undefined> {
    const { service, basic: authorization, outcomes } = this.#caller;
    const body = new URLSearchParams({ grant_type: 'client_credentials' });
    const response = await fetch(`${service}/oauth/token`, { method: 'POST', headers: { authorization }, body });
    outcomes.add(`token: ${response.status}`);
    return ((await response.json()) as { access_token?: string }).access_token;
  }
}

/** Makes a tenant with a client, a custom entity type and an agent. */
export async function prepareTenant(
  db: Database,
  tenant: string,
  connection: Pick<Caller, 'service' | 'recorder' | 'outcomes' | 'over'>,
): Promise<Caller> {
  const basic = basicOf(await makeTenant(db, tenant));
  const acknowledged = { changes: [], writes: 0, unknownWrites: 0, chats: 0 };
  const caller: Caller = { ...connection, tenant, basic, acknowledged };
  const session = new Session(caller);
  await session.call('prepare', `/schema/${tenant}/custom-entities/BOX`, 'PUT', { name: { en: 'Box' } });
  await session.call('prepare', `/ai-service/${tenant}/agentic/agents/desk`, 'PUT', {
    name: { en: 'Desk' },
    llmConfig: { provider: 'openai', model: 'gpt-5.4-mini', apiKey: 'sk-bench' },
  });
  return caller;
}

/** Sends batches of changes to the recorder, each until it is acknowledged. Their times lie in the last `days`. */
export async function record(caller: Caller, name: string, days = 1): Promise<void> {
  await every(250, caller, async (turn) => {
    const ids = Array.from({ length: 10 }, (_none, index) => `${name}-${turn}-${index}`);
    const at = new Date(Date.now() - Math.floor(Math.random() * days * 86_400_000)).toISOString();
    const changes = ids.map((id) =>
      JSON.stringify({ id, op: 'insert', entity: 'order', entityId: `${turn % 50}`, at, after: { id, total: turn } }),
    );
    const body = gzipSync(changes.join('\n'));
    for (;;) {
      const answer = await fetch(`${caller.recorder}/recorder/${caller.tenant}/changes`, {
        method: 'POST',
        headers: { authorization: caller.basic, 'content-type': 'application/x-ndjson', 'content-encoding': 'gzip' },
        body,
      }).catch(() => undefined);
      caller.outcomes.add(`recorder: ${answer?.status ?? 'connection broken'}`);
      await answer?.arrayBuffer().catch(() => {});
      if (answer?.status === 200) break;
      await sleep(200 + Math.random() * 300);
    }
    caller.acknowledged.changes.push(...ids);
  });
}

export async function read(caller: Caller): Promise<void> {
  const session = new Session(caller);
  const { tenant } = caller;
  const paths = [
    `/changelog/${tenant}/changelogs?size=50`,
    `/changelog/${tenant}/changelogs?q=${encodeURIComponent('entity:order type:create')}&page=3`,
    `/changelog/${tenant}/histogram`,
    `/changelog/${tenant}/facets?field=entity`,
    `/schema/${tenant}/custom-entities/BOX/instances?pageSize=20&sort=count:DESC`,
    `/ai-service/${tenant}/jobs?pageSize=5`,
    `/usage/${tenant}`,
  ];
  await every(150, caller, async (turn) => {
    const path = paths[turn % paths.length] ?? '';
    await session.call(`read ${path.replace(/\?.*/, '').replace(tenant, '{tenant}')}`, path);
  });
}

export async function write(caller: Caller): Promise<void> {
  const session = new Session(caller);
  await every(300, caller, async (turn) => {
    const path = `/schema/${caller.tenant}/custom-entities/BOX/instances/box-${turn % 40}`;
    const answer = await session.call('write an instance', path, 'PUT', { count: turn, note: 'x'.repeat(200) });
    if (answer === undefined || answer.status >= 500) caller.acknowledged.unknownWrites += 1;
    else if (answer.status < 300) caller.acknowledged.writes += 1;
  });
}

export async function chat(caller: Caller): Promise<void> {
  const session = new Session(caller);
  await every(2_000, caller, async (turn) => {
    const kind = turn % 2 === 0 ? 'chat' : 'chat-stream';
    const body = { agentId: 'desk', message: 'Who changed what?' };
    const answer = await session.call(kind, `/ai-service/${caller.tenant}/agentic/${kind}`, 'POST', body);
    if (answer?.status !== 200) return;
    if (kind === 'chat' || answer.text.includes('event: done')) caller.acknowledged.chats += 1;
    else
      caller.outcomes.add(`${kind}: ${answer.text.includes('event: error') ? 'event error' : 'without a final event'}`);
  });
}

/** Repeats work until the load is over, with a pause that is a little different each time. */
async function every(milliseconds: number, { over }: Caller, work: (turn: number) => Promise<void>): Promise<void> {
  for (let turn = 0; !over.aborted; turn++) {
    await work(turn);
    await sleep(milliseconds * (0.5 + Math.random()));
  }
}
