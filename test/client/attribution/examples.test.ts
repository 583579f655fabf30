import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { startCapture, useCaptureDatabases } from '../../sources/capture/captured.ts';
import { createApplication, startRelay } from '../../sources/outbox/relayed.ts';
import { attributionsOf } from '../../sources/who.ts';
import type { TestDatabase } from '../../support/server/database.ts';
import { eventually } from '../../support/server/patience.ts';

const databases = useCaptureDatabases();
const examples = join(import.meta.dirname, '../../../examples');

const read = (example: string, file: string) => readFileSync(join(examples, example, file), 'utf8');
const mappingOf = (example: string) => JSON.parse(read(example, 'mapping.json'));

/** Starts the example, and gives its address. */
async function start(example: string, args: string[], url: string): Promise<string> {
  const child = spawn(process.execPath, args, {
    cwd: join(examples, example),
    env: { PATH: process.env.PATH, DATABASE_URL: url, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  onTestFinished(async () => {
    child.kill();
    expect((await ended)[1] ?? 'SIGTERM').toBe('SIGTERM');
  });
  const [address] = await Promise.race([
    once(createInterface(child.stdout), 'line'),
    ended.then(() => Promise.reject(new Error(`${example} ended`))),
  ]);
  return address;
}

/** Two people order at the same time, and Jane cancels what John ordered. */
async function shop(address: string): Promise<void> {
  const send = async (person: string, path: string, body?: object) => {
    const answer = await fetch(`${address}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${person}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    return [answer.status, await answer.json()];
  };
  const [, johns] = await Promise.all([
    send('jane', '/orders', { product: 1, quantity: 2 }),
    send('john', '/orders', { product: 2, quantity: 1 }),
  ]);
  expect(johns).toMatchObject([201, { product: 2 }]);
  expect(await send('john', '/orders', { product: 2, quantity: 100 })).toMatchObject([409, {}]);
  expect(await send('jill', '/orders', { product: 1, quantity: 1 })).toMatchObject([401, {}]);
  expect(await send('jane', `/orders/${johns[1].id}/cancel`)).toMatchObject([200, { state: 'cancelled' }]);
}

async function expectWho(history: TestDatabase): Promise<void> {
  const entries = async (entity: string) => await attributionsOf(history, entity);
  await eventually(async () => (await entries('order')).length).toBe(3);
  await eventually(async () => (await entries('product')).length).toBe(2);
  const stock = new Map((await entries('product')).map((change) => [change.entityId, change]));
  const orders = await entries('order');
  const [jane, john] = ['Jane Doe (u-17)', 'John Roe (u-18)'];
  expect([stock.get('1')?.who, stock.get('2')?.who]).toEqual([jane, john]);
  const [placedByJane, placedByJohn] = [jane, john].map((who) => orders.slice(0, 2).find((order) => order.who === who));
  expect(orders[2]).toMatchObject({ who: jane, entityId: placedByJohn?.entityId });
  expect(placedByJane?.correlationId).toBe(stock.get('1')?.correlationId);
  expect(placedByJohn?.correlationId).toBe(stock.get('2')?.correlationId);
  const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;
  const ids = new Set(orders.map(({ correlationId }) => correlationId));
  expect([...ids]).toEqual([1, 2, 3].map(() => expect.stringMatching(uuid)));
}

test('Fastify and Drizzle, recorded by triggers', async () => {
  const example = 'fastify-drizzle';
  const application = await createApplication(
    databases.openHistory(),
    read(example, 'schema.sql'),
    mappingOf(example).tables,
  );
  const address = await start(example, ['server.ts'], application.url);
  startRelay(application);
  await shop(address);
  await expectWho(application.history);
});

test('Nest and TypeORM, without a change of the data access, recorded from the log', async () => {
  const example = 'nest-typeorm';
  const compiler = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc');
  await promisify(execFile)(process.execPath, [compiler, '-p', join(examples, example)]);
  const source = databases.openSource();
  await source.pool.query(read(example, 'schema.sql'));
  const setup = { source, history: databases.openHistory(), mapping: mappingOf(example), choice: { alter: true } };
  await startCapture(setup).running;
  const address = await start(example, ['--import', '@annals/client/register', 'dist/main.js'], source.url);
  await shop(address);
  await expectWho(setup.history);
});
