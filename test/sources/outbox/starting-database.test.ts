import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startAnnals } from '../../support/server/command.ts';
import { startDatabaseProxy } from '../../support/server/database-proxy.ts';
import { entriesOf } from '../../support/server/entries.ts';
import { eventually } from '../../support/server/patience.ts';
import { createSourceDatabase, startSourceServer } from '../../support/server/source-server.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { startCapture } from '../capture/captured.ts';
import { useHistory } from '../history.ts';
import { createApplication, startRelay } from './relayed.ts';

const openHistory = useHistory();

const tables = { 'public.orders': { entity: 'order' } };
const orders = 'create table orders (id int primary key)';

async function startStartingServer(databaseUrl: string) {
  const proxy = await startDatabaseProxy(databaseUrl);
  onTestFinished(() => proxy.close());
  proxy.fail('starting');
  return proxy;
}

test('the relay waits for a source that is starting, and then records', async () => {
  const application = await createApplication(openHistory(), orders, tables);
  const source = await startStartingServer(application.url);
  const { running, messages } = startRelay({ ...application, url: source.url });
  await eventually(async () => source.refused).toBeGreaterThan(1);
  expect(messages).toEqual(['the source is starting. The relay waits for it']);
  source.mend();
  await running;
  await application.pool.query('insert into orders values (1)');
  await eventually(() => entriesOf(application.history)).toHaveLength(1);
});

test('a relay that is stopped while it waits ends in order, and any other refusal ends it at once', async () => {
  const application = await createApplication(openHistory(), orders, tables);
  const source = await startStartingServer(application.url);
  const waiting = startRelay({ ...application, url: source.url });
  await eventually(async () => source.refused).toBeGreaterThan(0);
  await waiting.stop();
  await expect(waiting.ended).resolves.toBeUndefined();
  const nowhere = new URL(application.url);
  nowhere.pathname = '/nowhere';
  await expect(startRelay({ ...application, url: nowhere.href }).ended).rejects.toThrow('the source refuses');
});

test("commands wait while Annals' own database is starting, and end in order when they are stopped", async () => {
  const application = await createApplication(openHistory(), orders, tables);
  const folder = temporaryFolder();
  const file = join(folder, 'mapping.json');
  await writeFile(file, JSON.stringify(application.mapping));
  const database = await startStartingServer(application.history.url);
  const key = Buffer.alloc(32, 7).toString('base64');
  const environment = { DATABASE_URL: database.url, ANNALS_SECRET_KEY: key, ANNALS_SOURCE_URL: application.url };
  const stopped = startAnnals(['relay', '--mapping', file], environment);
  await eventually(async () => database.refused).toBeGreaterThan(1);
  stopped.process.kill('SIGTERM');
  expect(await stopped.ended).toMatchObject({
    stderr: expect.stringContaining('the database is starting. Annals waits for it'),
  });
  const relaying = startAnnals(['relay', '--mapping', file], environment);
  const { refused } = database;
  await eventually(async () => database.refused).toBeGreaterThan(refused);
  database.mend();
  await relaying.firstLine;
  relaying.process.kill('SIGTERM');
  expect((await relaying.ended).code).toBe(0);
});

test('capture waits for a source that is starting', async () => {
  const server = await startSourceServer();
  onTestFinished(() => server.close());
  const database = await createSourceDatabase(server);
  await database.pool.query(orders);
  const source = await startStartingServer(database.url);
  const history = openHistory();
  const { running } = startCapture({ source: database, history, tables, url: source.url });
  await eventually(async () => source.refused).toBeGreaterThan(1);
  source.mend();
  await running;
  await database.pool.query('insert into orders values (1)');
  await eventually(() => entriesOf(history)).toHaveLength(1);
});
