import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { NewClient } from '../../../src/access/oauth/clients.ts';

// Milliseconds: an answer that takes longer is none.
const maxAnswer = 15_000;
const restBetweenCalls = 10;
const historyMessage = 'Problem encountered while trying to retrieve changelog history.';

export interface OutageOptions {
  baseUrl: string;
  tenant: string;
  client: NewClient;
  /** Reads what the database has, once the load has ended. */
  pool: pg.Pool;
  /** How many outages, one after another. */
  times: number;
  /** Makes an outage; resolves when the database can be reached again. */
  outage(): Promise<void>;
}

export interface OutageReport {
  /** How many calls had which status, by operation: `history 200`. */
  counts: Record<string, number>;
  /** Answers that say something wrong, and calls without an answer. */
  dishonest: string[];
  /** Milliseconds after each outage until every operation had succeeded once. */
  recoveries: number[];
  /** Instances that a 201 has acknowledged. */
  acknowledged: number;
  /** Those of them that are not in the database, or not in its history. */
  lost: string[];
}

interface Operation {
  name: string;
  call(signal: AbortSignal): Promise<Response>;
}

/** Calls a service concurrently during outages of its database, and reports what the responses said. */
export async function amidOutages(options: OutageOptions): Promise<OutageReport> {
  const { baseUrl, tenant, client, pool, times, outage } = options;
  const report: OutageReport = { counts: {}, dishonest: [], recoveries: [], acknowledged: 0, lost: [] };
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: client.clientId,
    client_secret: client.clientSecret,
  });
  const askToken = (signal: AbortSignal) => fetch(`${baseUrl}/oauth/token`, { method: 'POST', body: form, signal });
  const { access_token: token } = (await (await askToken(AbortSignal.timeout(maxAnswer))).json()) as {
    access_token: string;
  };
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const notes = `${baseUrl}/schema/${tenant}/custom-entities/NOTE`;
  const made = await fetch(`${baseUrl}/schema/${tenant}/custom-entities`, {
    method: 'POST',
    headers,
    body: '{"id":"NOTE","name":{"en":"Note"}}',
  });
  if (made.status !== 201) throw new Error(`no type: ${made.status} ${await made.text()}`);

  const operations: Operation[] = [
    { name: 'history', call: (signal) => fetch(`${baseUrl}/changelog/${tenant}/changelogs`, { headers, signal }) },
    { name: 'list', call: (signal) => fetch(`${notes}/instances?sort=n&pageSize=5`, { headers, signal }) },
    { name: 'token', call: askToken },
    {
      name: 'write',
      call: (signal) => fetch(`${notes}/instances`, { method: 'POST', headers, body: '{"n":1}', signal }),
    },
  ];
  const acknowledged: string[] = [];
  let over = false;

  /** Whether it succeeded. */
  const callOnce = async ({ name, call }: Operation): Promise<boolean> => {
    let status: number | string = 'none';
    try {
      const response = await call(AbortSignal.timeout(maxAnswer));
      const text = await response.text();
      status = response.status;
      const fault = faultOf(name, response, text);
      if (fault !== undefined) report.dishonest.push(`${name}: ${fault}`);
      if (name === 'write' && response.status === 201) acknowledged.push(JSON.parse(text).id);
      return response.ok;
    } catch (error) {
      report.dishonest.push(`${name}: no answer: ${error instanceof Error ? (error.cause ?? error) : error}`);
      return false;
    } finally {
      const key = `${name} ${status}`;
      report.counts[key] = (report.counts[key] ?? 0) + 1;
    }
  };
  const load = [...operations, ...operations].map(async (operation) => {
    while (!over) {
      await callOnce(operation);
      await sleep(restBetweenCalls);
    }
  });

  try {
    for (let turn = 0; turn < times; turn++) {
      await outage();
      const began = performance.now();
      for (const operation of operations) {
        while (!(await callOnce(operation))) await sleep(restBetweenCalls);
      }
      report.recoveries.push(performance.now() - began);
    }
  } finally {
    over = true;
    await Promise.all(load);
  }
  report.acknowledged = acknowledged.length;
  const { rows } = await pool.query<{ id: string }>(
    `select id from unnest($2::text[]) as told (id)
       where not exists (select from custom_instance i where i.tenant = $1 and i.type = 'NOTE' and i.id = told.id)
          or not exists (select from change_entry e where e.tenant = $1 and e.entity_id = told.id)`,
    [tenant, acknowledged],
  );
  report.lost = rows.map(({ id }) => id);
  return report;
}

/** What an answer says that is not so (contract 3). */
function faultOf(name: string, response: Response, text: string): string | undefined {
  if (response.ok) return undefined;
  const fault = `${response.status} ${text.slice(0, 200)}`;
  if (name === 'history' && response.status === 500) return text.includes(historyMessage) ? undefined : fault;
  const honest =
    response.status === 503 && text.includes('"service_unavailable"') && response.headers.has('retry-after');
  return honest ? undefined : fault;
}
