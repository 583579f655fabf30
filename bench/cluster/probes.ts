import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { Caller } from '../soak/clients.ts';
import type { Answers } from './answers.ts';

export interface Probed extends Caller {
  answers: Answers;
}

/** What one tenant's probes know. */
export interface Seen {
  /** Ids of changes that the recorder acknowledged. */
  changes: string[];
  /** Keys of configurations that were written, and those of which nobody knows. */
  keys: string[];
  unknownKeys: string[];
  /** Texts of other tenants, which must never come. */
  foreign: string[];
}

/** Calls one operation at a time until the load is over, and notes status and duration of each answer. */
async function probe(
  { over, answers, tenant }: Probed,
  operation: string,
  pause: number,
  call: (turn: number) => Promise<{ status: number }>,
): Promise<void> {
  for (let turn = 0; !over.aborted; turn++) {
    const begun = performance.now();
    const { status } = await call(turn).catch(() => ({ status: 0 }));
    answers.add({ tenant, operation, begun, took: performance.now() - begun, status });
    await sleep(pause * (0.5 + Math.random()));
  }
}

/** Calls of each kind: token, pages, facets, configurations, agents. Each kind waits for its own answers alone. */
export async function probeAll(of: Probed, seen: Seen, token: string): Promise<void> {
  const { tenant, service } = of;
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const signal = () => AbortSignal.timeout(60_000);
  const get = async (path: string) => {
    const response = await fetch(`${service}${path}`, { headers, signal: signal() });
    const text = await response.text();
    // An id of a change starts with the name of its tenant.
    for (const [, owner = ''] of text.matchAll(/\b(\w+)-\d+-\d+\b/g)) if (owner !== tenant) seen.foreign.push(owner);
    return response;
  };
  await Promise.all([
    probe(of, 'page', 150, () => get(`/changelog/${tenant}/changelogs?size=20`)),
    probe(of, 'page of a query', 250, () => get(`/changelog/${tenant}/changelogs?q=entity:order&page=2`)),
    probe(of, 'facets', 400, () => get(`/changelog/${tenant}/facets?field=entity`)),
    probe(of, 'agents', 400, () => get(`/ai-service/${tenant}/agentic/agents`)),
    probe(of, 'token', 400, async () => {
      const body = new URLSearchParams({ grant_type: 'client_credentials' });
      const init = { method: 'POST', headers: { authorization: of.basic }, body, signal: signal() };
      const response = await fetch(`${service}/oauth/token`, init);
      await response.arrayBuffer();
      return response;
    }),
    probe(of, 'write', 300, async (turn) => {
      const key = `k${turn}`;
      seen.unknownKeys.push(key);
      const body = JSON.stringify([{ key, value: `${tenant}-${turn}-0` }]);
      const init = { method: 'POST', headers, body, signal: signal() };
      const response = await fetch(`${service}/configuration/${tenant}/configurations`, init);
      await response.arrayBuffer();
      if (response.status === 201) seen.keys.push(key);
      return response;
    }),
    recordUntilOver(of, seen),
  ]);
}

/** Sends batches to the recorder, each until it is acknowledged. */
async function recordUntilOver(of: Probed, seen: Seen): Promise<void> {
  let batch = 0;
  let body = Buffer.alloc(0);
  let ids: string[] = [];
  await probe(of, 'record', 250, async () => {
    if (ids.length === 0) {
      const at = new Date().toISOString();
      ids = Array.from({ length: 10 }, (_none, index) => `${of.tenant}-${batch}-${index}`);
      batch += 1;
      const changes = ids.map((id, index) =>
        JSON.stringify({ id, op: 'insert', entity: 'order', entityId: `${index}`, at, after: { id } }),
      );
      body = gzipSync(changes.join('\n'));
    }
    const response = await fetch(`${of.recorder}/recorder/${of.tenant}/changes`, {
      method: 'POST',
      headers: { authorization: of.basic, 'content-type': 'application/x-ndjson', 'content-encoding': 'gzip' },
      body,
      signal: AbortSignal.timeout(60_000),
    });
    await response.arrayBuffer();
    if (response.status === 200) {
      seen.changes.push(...ids);
      ids = [];
    }
    return response;
  });
}
