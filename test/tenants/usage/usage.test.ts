import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  applyToQuota,
  chargeExpired,
  type LedgerRequest,
  type Settlement,
  sendReserved,
} from '../../../src/desk/completions/quota-store.ts';
import { dropExpired, setRetention } from '../../../src/history/retention/retention.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { recordOf, startOfRecord } from '../../../src/providers/call-record.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { checkLaw } from '../../support/oracle/law.ts';
import { callStart, endedCall } from '../../support/server/calls.ts';
import { changeOf } from '../../support/server/history.ts';
import { startTestServer } from '../../support/server/server.ts';

const dayLength = 86_400_000;
const today = Date.UTC(2026, 8, 15);
let now = today;

let tenants = 0;

interface UsageLine {
  date: string;
  entries: number;
  bytes: number;
  requests: number;
  inputTokens: number;
  outputTokens: number;
}

const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));

test('entries and bytes are those of a plain count, whatever is folded, repeated or dropped', async () => {
  const batch = fc.record({
    // The day on which it is recorded.
    day: fc.nat(3),
    // Some are there already, some are older than the tenant keeps.
    ids: fc.uniqueArray(fc.nat(40), { maxLength: 6 }),
    next: fc.constantFrom('nothing', 'fold', 'drop'),
  });
  await checkLaw(fc.array(batch, { minLength: 1, maxLength: 8 }), { runs: 4 }, async (batches) => {
    const tenant = await newTenant();
    const recorded = new Set<number>();
    const expected = [0, 1, 2, 3].map(() => ({ entries: 0, bytes: 0 }));
    let keepsFiveDays = false;
    for (const { day, ids, next } of batches.toSorted((left, right) => left.day - right.day)) {
      now = today + day * dayLength;
      const horizon = keepsFiveDays ? now - 5 * dayLength : 0;
      const changes = ids.map((id) => changeOfId(id));
      await createRecorder(server.context.db, tenant, () => now)(changes);
      const line = expected[day];
      for (const [index, { at, related, entityId, name = '', context = '', paths }] of changes.entries()) {
        const id = ids[index] ?? 0;
        if (line === undefined || at < horizon || recorded.has(id)) continue;
        recorded.add(id);
        line.entries += 1;
        const stored = related.length === 0 ? '' : JSON.stringify(related);
        line.bytes += Buffer.byteLength(entityId + name + context + paths + stored);
      }
      if (next === 'fold') await foldHistory(server.context.db, tenant);
      if (next === 'drop') {
        await dropAll(tenant);
        keepsFiveDays = true;
      }
    }
    const lines = await read(tenant, await server.token(tenant), `from=${dateOf(0)}&to=${dateOf(3)}`);
    expect(lines.map(({ entries, bytes }) => ({ entries, bytes }))).toEqual(expected);
  });
});

test('tokens are those of the quota, on the day on which the call began', async () => {
  const tenant = await newTenant();
  const token = await server.token(tenant);
  const [settled, lost, late, open] = [1, 2, 3, 4].map((place) => `00000000-0000-4000-8000-00000000000${place}`);
  if (settled === undefined || lost === undefined || late === undefined || open === undefined) throw new Error();
  const begin = (id: string, days = 0) => ({ ...callStart(), id, at: Date.now() - days * dayLength });
  const want = (reservation: string, days?: number) => {
    const begun = startOfRecord(begin(reservation, days));
    return { reservation, inputBound: 100, isBounded: true, outputCap: 10, begun };
  };
  await apply(tenant, { requests: [want(settled), want(lost, 2), want(late, 2), want(open)] });
  const sendings = [settled, lost, late, open].map((reservation) => ({ reservation, lease: 60_000 }));
  expect(await sendReserved(server.context.vital.pool, tenant, sendings)).toEqual([true, true, true, true]);
  const settle = (reservation: string, days: number, [input, output]: [number, number]) => {
    const record = recordOf(begin(reservation, days), endedCall({ inputTokens: input, outputTokens: output }));
    return apply(tenant, { settlements: [{ reservation, input, output, record }] });
  };
  await settle(settled, 0, [21, 2]);
  // Two leases ended two days ago.
  await server.database.pool.query(
    `update completion_reservation set expires_at = now() - interval '2 days' where tenant = $1 and reservation = any($2)`,
    [tenant, [lost, late]],
  );
  await chargeExpired(server.context.db, tenant);
  const from = new Date(Date.now() - 3 * dayLength).toISOString();
  const to = new Date(Date.now() + dayLength).toISOString();
  const tokens = async () =>
    (await read(tenant, token, new URLSearchParams({ from, to }).toString())).map((line) => [
      line.inputTokens,
      line.outputTokens,
    ]);
  expect(await tokens()).toEqual([
    [0, 0],
    [200, 20],
    [0, 0],
    [21, 2],
    [0, 0],
  ]);
  await settle(late, 2, [7, 1]);
  expect((await tokens())[1]).toEqual([107, 11]);
  const { rows } = await server.database.pool.query(
    'select input_used, output_used from completion_quota where tenant = $1',
    [tenant],
  );
  expect(rows).toEqual([{ input_used: 128, output_used: 13 }]);
});

test('requests of all processes add up to the lines of the logs; a stop stores what is left', async () => {
  now = today;
  const tenant = await newTenant();
  const second = await startTestServer({ database: server.database, clock: { now: () => now } });
  const token = await server.token(tenant);
  try {
    for (const on of [server, second, second]) await read(tenant, token, '', on);
    expect((await second.call(`/usage/${tenant}?from=x`, { token })).status).toBe(400);
    // Without a token, or of a tenant that the token is not for.
    expect((await second.call(`/usage/${tenant}`)).status).toBe(401);
    expect((await second.call('/usage/somebody', { token })).status).toBe(403);
  } finally {
    await second.close();
  }
  await server.context.usage.store();
  expect((await read(tenant, token)).at(-1)).toEqual({
    date: '2026-09-15',
    entries: 0,
    bytes: 0,
    requests: 4,
    inputTokens: 0,
    outputTokens: 0,
  });
  const lines = [...server.logLines, ...second.logLines].map((line) => JSON.parse(line));
  // The last one is not counted yet.
  expect(lines.filter((line) => line.msg === 'request' && line.tenant === tenant)).toHaveLength(5);
});

test('requests of a deleted tenant are dropped, and the others are stored', async () => {
  const tenant = await newTenant();
  server.context.usage.countRequest('gone');
  server.context.usage.countRequest(tenant);
  await server.context.usage.store();
  expect((await read(tenant, await server.token(tenant))).at(-1)?.requests).toBe(1);
});

test('there is a line for each day, the oldest first; left out, the last 30', async () => {
  now = today + 5;
  const tenant = await newTenant();
  const token = await server.token(tenant);
  const dates = async (parameters: string) => (await read(tenant, token, parameters)).map(({ date }) => date);
  const usual = await dates('');
  expect([usual.length, usual[0], usual.at(-1)]).toEqual([30, '2026-08-17', '2026-09-15']);
  expect(await dates('to=2024-03-01&from=2024-02-28')).toEqual(['2024-02-28', '2024-02-29', '2024-03-01']);
  expect(await dates('from=2026-09-15')).toEqual(['2026-09-15']);
  // A time stands for its day in UTC.
  const times = new URLSearchParams({ from: '2026-09-01T23:30:00-02:00', to: '2026-09-03T00:00:00+01:00' });
  expect(await dates(times.toString())).toEqual(['2026-09-02']);
  expect(await dates('from=2024-01-01&to=2024-12-31')).toHaveLength(366);
});

test.each([
  ['from=2023-12-31&to=2024-12-31', 'from', 'from and to must not span more than 366 days'],
  ['from=2026-09-02&to=2026-09-01', 'from', 'from must not be after to'],
  ['from=2026-09-16', 'from', 'from must not be after today'],
  ['from=2026-02-29', 'from', 'from must be a date that exists'],
  ['to=20260901', 'to', 'to must be a date such as 2026-08-31, or a time such as 2026-08-31T12:00:00.000Z'],
  ['to=2026-09-01T00:00:00', 'to', 'to must be a date such as 2026-08-31, or a time such as'],
  ['from=', 'from', 'from must be a date'],
  ['from=2026-09-01&from=2026-09-01', 'from', 'from'],
])('400 for %s', async (parameters, field, message) => {
  now = today;
  const tenant = 'wrong';
  const response = await server.call(`/usage/${tenant}?${parameters}`, { token: await server.token(tenant) });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({
    type: 'validation_violation',
    details: [{ field, message: expect.stringContaining(message) }],
  });
});

test('it needs its own scope', async () => {
  const token = await server.token('scoped', { scope: 'changelog.changelog_manage ai.completion_manage' });
  expect((await server.call('/usage/scoped', { token })).status).toBe(403);
});

function changeOfId(id: number) {
  return changeOf({
    identity: Buffer.alloc(16, id),
    at: today - (id % 8) * dayLength,
    entityId: `größer ${id}`,
    paths: JSON.stringify({ a: { after: 'x'.repeat(id * 100) } }),
    related: id % 3 === 0 ? [] : [{ entity: 'group', entityId: 'ü' }],
    ...(id % 2 === 0 ? { name: 'Stühle' } : {}),
    ...(id % 5 === 0 ? { context: '{"why":"because"}' } : {}),
  });
}

async function apply(tenant: string, batch: { settlements?: Settlement[]; requests?: LedgerRequest[] }): Promise<void> {
  const decisions = await applyToQuota(
    server.context.vital.pool,
    tenant,
    { settlements: [], requests: [], ...batch },
    { limits: { input: 1_000, output: 1_000 }, minOutput: 1, lease: 60_000 },
  );
  expect(decisions.map(({ outcome }) => outcome)).toEqual((batch.requests ?? []).map(() => 'reserved'));
}

/** Keeps five days, and deletes what is older. */
async function dropAll(tenant: string): Promise<void> {
  await setRetention(server.context.db, tenant, 5, now);
  await dropExpired(server.context.db, {
    signal: new AbortController().signal,
    onError: (error) => {
      throw error;
    },
    now: () => now,
    maxRows: 1_000,
    rest: async () => {},
  });
}

function dateOf(day: number): string {
  return new Date(today + day * dayLength).toISOString().slice(0, 10);
}

async function newTenant(): Promise<string> {
  tenants += 1;
  const tenant = `tenant${tenants}`;
  await server.createTenant(tenant);
  return tenant;
}

async function read(tenant: string, token: string, parameters = '', on = server): Promise<UsageLine[]> {
  const response = await on.call(`/usage/${tenant}?${parameters}`, { token });
  expect(response.status).toBe(200);
  return (await response.json()) as UsageLine[];
}
