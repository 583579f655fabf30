import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { Outcomes } from './outcomes.ts';

export interface Caller {
  tenant: string;
  service: string;
  recorder: string;
  /** Of a client with every scope that is needed. */
  basic: string;
  outcomes: Outcomes;
  /** Aborted when the load is over. */
  over: AbortSignal;
  /** How often the usual rate; default: 1. */
  rate?: number;
}

/** What a tenant's clients know to be done. */
export interface Acknowledged {
  /** Ids of changes that the recorder has acknowledged. */
  changes: string[];
  /** Writes of an instance that were acknowledged, and those of which nobody knows. */
  writes: number;
  unknownWrites: number;
  chats: number;
  unknownChats: number;
  exports: number;
}

/** A token that is got anew when it is refused. */
export class Session {
  readonly #caller: Caller;
  #token: string | undefined;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Calls the service. Returns undefined where the connection broke. A body is read in full, so that half of one counts. */
  async call(
    operation: string,
    path: string,
    init: RequestInit = {},
  ): Promise<{ status: number; text: string } | undefined> {
    const { outcomes } = this.#caller;
    try {
      this.#token ??= await this.#grant();
      if (this.#token === undefined) return undefined;
      const response = await fetch(`${this.#caller.service}${path}`, {
        ...init,
        headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
        signal: AbortSignal.timeout(120_000),
      });
      const text = await response.text();
      if (response.status === 401) this.#token = undefined;
      outcomes.add(operation, response.status === 500 ? `500 ${text.slice(0, 120)}` : response.status);
      return { status: response.status, text };
    } catch (error) {
      outcomes.add(operation, error instanceof DOMException ? 'no answer in 120 s' : 'connection broken');
      return undefined;
    }
  }

  async #grant(): Promise<string | undefined> {
    const response = await fetch(`${this.#caller.service}/oauth/token`, {
      method: 'POST',
      headers: { authorization: this.#caller.basic },
      body: new URLSearchParams({ grant_type: 'client_credentials' }),
    });
    this.#caller.outcomes.add('token', response.status);
    const body = (await response.json()) as { access_token?: string };
    return body.access_token;
  }
}

/** Repeats work until the load is over, with a pause that is a little different each time. */
export async function every(
  milliseconds: number,
  { over, rate = 1 }: Caller,
  work: (turn: number) => Promise<void>,
): Promise<void> {
  for (let turn = 0; !over.aborted; turn++) {
    await work(turn);
    await sleep((milliseconds / rate) * (0.5 + Math.random()));
  }
}

/** Sends batches of changes to the recorder, each until it is acknowledged. */
export async function record(caller: Caller, acknowledged: Acknowledged, name: string, oldest: number): Promise<void> {
  await every(250, caller, async (turn) => {
    const ids = Array.from({ length: 10 }, (_none, index) => `${name}-${turn}-${index}`);
    const at = new Date(Date.now() - Math.floor(Math.random() * oldest)).toISOString();
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
      caller.outcomes.add('recorder', answer?.status ?? 'connection broken');
      if (answer?.status === 200) break;
      await answer?.body?.cancel().catch(() => {});
      await sleep(200 + Math.random() * 300);
    }
    acknowledged.changes.push(...ids);
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
  ];
  await every(150, caller, async (turn) => {
    const path = paths[turn % paths.length] ?? '';
    await session.call(`read ${path.replace(/\?.*/, '').replace(tenant, '{tenant}')}`, path);
  });
}

export async function write(caller: Caller, acknowledged: Acknowledged): Promise<void> {
  const session = new Session(caller);
  await every(300, caller, async (turn) => {
    const path = `/schema/${caller.tenant}/custom-entities/BOX/instances/box-${turn % 40}`;
    const answer = await session.call('write an instance', path, {
      method: 'PUT',
      body: JSON.stringify({ count: turn, note: 'x'.repeat(200) }),
    });
    if (answer === undefined || answer.status >= 500) acknowledged.unknownWrites += 1;
    else if (answer.status < 300) acknowledged.writes += 1;
  });
}

export async function chat(caller: Caller, acknowledged: Acknowledged): Promise<void> {
  const session = new Session(caller);
  await every(2_000, caller, async (turn) => {
    const kind = turn % 2 === 0 ? 'chat' : 'chat-stream';
    const answer = await session.call(kind, `/ai-service/${caller.tenant}/agentic/${kind}`, {
      method: 'POST',
      body: JSON.stringify({ agentId: 'desk', message: 'Who changed what?' }),
    });
    const isWhole = answer?.status === 200 && (kind === 'chat' || answer.text.includes('event: done'));
    if (answer?.status === 200 && !isWhole) caller.outcomes.add(kind, 'without its end');
    if (isWhole) acknowledged.chats += 1;
    else acknowledged.unknownChats += 1;
  });
}

/** Makes exports, and compares the number of their entries with the lines of their files. */
export async function exportHistory(caller: Caller, acknowledged: Acknowledged): Promise<void> {
  const session = new Session(caller);
  const jobs = `/ai-service/${caller.tenant}/jobs`;
  await every(15_000, caller, async () => {
    const body = JSON.stringify({ type: 'EXPORT', q: 'entity:order', format: 'NDJSON' });
    const made = await session.call('export', jobs, { method: 'POST', body });
    if (made?.status !== 201) return;
    const { jobId } = JSON.parse(made.text) as { jobId: string };
    const until = performance.now() + 180_000;
    while (performance.now() < until) {
      const seen = await session.call('look at an export', `${jobs}/${jobId}`);
      const job =
        seen?.status === 200
          ? (JSON.parse(seen.text) as { status: string; metadata: { entries?: number } })
          : undefined;
      if (job === undefined || job.status === 'in_progress') {
        await sleep(500);
        continue;
      }
      if (job.status !== 'success') caller.outcomes.add('export', `500 ended as ${JSON.stringify(job).slice(0, 200)}`);
      const file = await session.call('file of an export', `${jobs}/${jobId}/content`);
      if (file?.status !== 200) return;
      const lines = file.text.split('\n').length - 1;
      if (lines !== job.metadata.entries)
        caller.outcomes.add('export', `500 has ${lines} lines of ${job.metadata.entries}`);
      acknowledged.exports += 1;
      await session.call('delete an export', `${jobs}/${jobId}`, { method: 'DELETE' });
      return;
    }
    caller.outcomes.add('export', '500 has not ended in 180 s');
  });
}
