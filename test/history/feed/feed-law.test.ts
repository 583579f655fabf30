import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { Annals } from '../../../clients/typescript/src/index.ts';
import { createClient } from '../../../src/access/oauth/clients.ts';
import { runCommandLine } from '../../../src/cli/commands/command-line.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { givePositions } from '../../../src/recording/positions.ts';
import { recordChanges } from '../../../src/recording/record-change.ts';
import { trials } from '../../support/oracle/trials.ts';
import { startAnnals, startHere } from '../../support/server/command.ts';
import { createTestDatabase, createTestDatabaseForThisTest } from '../../support/server/database.ts';
import { changeOf } from '../../support/server/history.ts';
import { ownPort } from '../../support/server/own-port.ts';
import { placesOf } from '../../support/server/positions.ts';
import { testSecretKeys } from '../../support/server/server.ts';

const tenant = 'acme';
const now = Date.now();
const q = 'entity:(order, product)';
const entities = ['order', 'product', 'site'];

interface Seen {
  readonly position: number;
  readonly at: string;
  readonly entityId: string;
}

test('readers of every kind see what is in the table, in its order, across kills of the service', async () => {
  const database = await createTestDatabaseForThisTest(createTestDatabase);
  const { db, pool } = database;
  await createTenant(db, tenant);
  const client = await createClient(db, { tenant, scope: 'changelog.changelog_read', name: 'reader' });
  const environment = {
    DATABASE_URL: database.url,
    ANNALS_SECRET_KEY: testSecretKeys.map((key) => Buffer.from(key).toString('base64')).join(','),
    LOG_LEVEL: 'fatal',
  };
  const port = `${await ownPort()}`;
  const start = () => startAnnals(['serve'], { ...environment, PORT: port });
  let service = start();
  onTestFinished(async () => {
    service.process.kill('SIGKILL');
    await service.ended;
  });
  await service.firstLine;
  const annals = new Annals({ baseUrl: `http://127.0.0.1:${port}`, ...client, maxRetries: 100 });
  const stop = new AbortController();
  const readers = { events: [] as Seen[], pages: [] as Seen[], lines: [] as Seen[] };

  async function readEvents(): Promise<void> {
    for await (const change of annals.history.tail({ q, after: 'start' }, { signal: stop.signal }))
      readers.events.push(change);
  }

  async function readPages(): Promise<void> {
    let token = '';
    let after = 'start';
    while (!stop.signal.aborted) {
      try {
        token ||= await newToken();
        const query = new URLSearchParams({ q, after, wait: '2', limit: '7' });
        const response = await fetch(`http://127.0.0.1:${port}/changelog/${tenant}/feed?${query}`, {
          headers: { authorization: `Bearer ${token}` },
          signal: stop.signal,
        });
        const { items, cursor } = (await response.json()) as { items: Seen[]; cursor: string };
        readers.pages.push(...items);
        after = cursor;
      } catch {
        await sleep(20);
      }
    }
  }

  async function newToken(): Promise<string> {
    const response = await fetch(`http://127.0.0.1:${port}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: client.clientId,
        client_secret: client.clientSecret,
      }),
    });
    return ((await response.json()) as { access_token: string }).access_token;
  }

  const stdout = new PassThrough();
  createInterface({ input: stdout }).on('line', (line) => readers.lines.push(JSON.parse(line)));
  const io = { environment, stdin: new PassThrough(), stdout, stderr: new PassThrough().resume() };
  const tail = runCommandLine(['tail', '--tenant', tenant, '--q', q, '--after', 'start'], {
    ...io,
    answer: () => {},
    tell: () => {},
    stop: stop.signal,
  });
  const reading = [readEvents(), readPages(), tail];

  let isWriting = true;
  let made = 0;
  const writers = [1, 2, 3].map(async (writer) => {
    while (isWriting) {
      const changes = Array.from({ length: 1 + ((made * writer) % 7) }, () => {
        made += 1;
        return changeOf({ at: now + (made % 13), entity: entities[made % 3] ?? '', entityId: `${made}` });
      });
      const isTakenBack = made % 5 === 0;
      await db
        .transaction()
        .execute(async (transaction) => {
          await recordChanges(transaction, tenant, changes, now, { way: 'import' });
          // Longer than the readers need, which share the CPUs with a starting service.
          await sleep(20 + ((made * writer) % 23));
          if (isTakenBack) throw new Error('taken back');
        })
        .catch((error: Error) => expect(error.message).toBe('taken back'));
    }
  });

  const kills = trials(2);
  for (let kill = 0; kill < kills; kill += 1) {
    const before = Object.values(readers).map(({ length }) => length);
    await expect
      .poll(() => Object.values(readers).every(({ length }, index) => length > (before[index] ?? 0) + 20), {
        timeout: 60_000,
      })
      .toBe(true);
    await sleep(Math.random() * 100);
    service.process.kill('SIGKILL');
    await service.ended;
    if (kill + 1 < kills) {
      service = start();
      await service.firstLine;
    }
  }
  // The last one is not killed.
  const last = startHere(['serve'], { ...environment, PORT: port });
  onTestFinished(async () => {
    last.stop();
    await last.ended;
  });
  await last.firstLine;
  isWriting = false;
  await Promise.all(writers);
  await givePositions(db, tenant);

  const { rows } = await pool.query<{ at: number; sequence: number; id: string; entity: string }>(
    `select e.at, e.sequence, e.entity_id as id, k.entity from change_entry e
       join change_kind k on k.tenant = e.tenant and k.kind = e.kind where e.tenant = $1`,
    [tenant],
  );
  // The service may still be assigning some of them.
  await expect.poll(() => placesOf(db, tenant), { timeout: 60_000 }).toHaveLength(rows.length);
  const places = await placesOf(db, tenant);
  const entries = new Map(rows.map((row) => [`${row.at} ${row.sequence}`, row]));
  const expected = places.flatMap(({ position, at, sequence }) => {
    const entry = entries.get(`${at} ${sequence}`);
    return entry === undefined || entry.entity === 'site' ? [] : [`${position} ${entry.id}`];
  });
  for (const [kind, seen] of Object.entries(readers)) {
    const inOrder = () => [...new Set(seen.map(({ position, entityId }) => `${position} ${entityId}`))];
    await expect.poll(() => inOrder().length, { timeout: 60_000, message: kind }).toBe(expected.length);
    expect({ kind, seen: inOrder() }).toEqual({ kind, seen: expected });
  }
  stop.abort(new Error('read'));
  await Promise.allSettled(reading);
}, 300_000);
