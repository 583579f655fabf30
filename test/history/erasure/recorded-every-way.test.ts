import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { olderSnapshotsEnded } from '../../../src/history/erasure/vacuum-tables.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { outboxSql } from '../../../src/sources/outbox/outbox-sql.ts';
import { startCapture } from '../../sources/capture/captured.ts';
import { startRelay } from '../../sources/outbox/relayed.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { annals } from '../../support/server/command.ts';
import { countOfEntries } from '../../support/server/entries.ts';
import { eventually } from '../../support/server/patience.ts';
import { databaseFilesWith, tablesWith } from '../../support/server/places-with.ts';
import { startTestRecorder } from '../../support/server/recorder.ts';
import { startTestServer } from '../../support/server/server.ts';
import { createSourceDatabase, type SourceDatabase, startSourceServer } from '../../support/server/source-server.ts';

const tenant = 'acme';
const secret = Buffer.alloc(32);
const words = ['Jane Canary', 'canary-4711', 'canary@example.org'];
const [jane = '', id = '', email = ''] = words;
const mappingOf = (table: string) => ({
  version: 1,
  tenant: { value: tenant },
  tables: { [`public.${table}`]: { entity: 'customer', id: ['id'], name: 'email' } },
});

const source = closeAfterAll(await startSourceServer());
const server = closeAfterAll(await startTestServer({ secretKeys: [secret] }));
const recorder = closeAfterAll(await startTestRecorder(server, { mapping: JSON.stringify(mappingOf('sent')) }));

test('no trace of a person recorded in every way is left after an erasure, and replays are duplicates or reported', async () => {
  const history = server.database;
  const environment = { DATABASE_URL: history.url, ANNALS_SECRET_KEY: secret.toString('base64') };
  // A client with the person's name: they are both actor and recorder.
  const token = await server.token(tenant, { name: jane });
  const at = Date.now() - 60_000;
  const line = JSON.stringify({ op: 'insert', entity: 'customer', entityId: id, name: email, at: new Date(at).toISOString(), actor: jane, id: 'l1', after: { email } }); // biome-ignore format: one line
  const event = JSON.stringify({
    op: 'c',
    before: null,
    after: { id, email, n: 1 },
    source: { version: '3.2.0', connector: 'postgresql', name: 'shop', ts_ms: at + 1, db: 'shop', schema: 'public', table: 'sent', lsn: 1 }, // biome-ignore format: one line
    ts_ms: at + 5,
    transaction: null,
  });
  const importFile = async () =>
    JSON.parse((await annals(['import', '--tenant', tenant, '-'], environment, line)).stdout);
  const sendEvent = async () => await (await recorder.post(tenant, event, { token, type: 'application/json' })).json();
  expect(await importFile()).toMatchObject({ recorded: 1 });
  expect(await sendEvent()).toMatchObject({ recorded: 1 });

  const shop = await createSourceDatabase(source);
  const table = (name: string) => `create table ${name} (id text primary key, email text, n int)`;
  await shop.pool.query(`${table('captured')}; alter table captured replica identity full; ${table('relayed')}`);
  await shop.pool.query(outboxSql(readMapping(JSON.stringify(mappingOf('relayed')))));
  const capturing = startCapture({ source: shop, history, mapping: mappingOf('captured') });
  await capturing.running;
  await shop.pool.query(
    `begin; select pg_logical_emit_message(true, 'annals.actor', '{"actor":"${jane}","context":{"mail":"${email}"}}');
     insert into captured values ('${id}', '${email}', 2); commit`,
  );
  await shop.pool.query(
    `begin; select set_config('annals.actor', '${jane}', true); insert into relayed values ('${id}', '${email}', 3); commit`,
  );
  await shop.pool.query('create table sent_already as table annals.outbox');
  startRelay({ url: shop.url, history, mapping: mappingOf('relayed') });
  await eventually(() => countOfEntries(history)).toBe(4);
  const isAlone = inject('cluster') === null;
  if (isAlone) expect(await databaseFilesWith(history, words)).not.toEqual([]);

  for (const of of [
    ['--actor', jane],
    ['--entity', 'customer', '--entity-id', id],
  ]) {
    const erased = await annals(
      ['erase', '--tenant', tenant, ...of, '--reason', 'request', '--yes', '--vacuum'],
      environment,
    );
    expect({ code: erased.code, ...JSON.parse(erased.stdout) }).toMatchObject({ code: 0, entries: 4 });
  }
  const expectNothing = async () => {
    for (const word of words) expect(await tablesWith(history, word)).toEqual([]);
    expect(await countOfEntries(history)).toBe(4);
  };
  await expectNothing();
  if (isAlone) expect(await databaseFilesWith(history, words)).toEqual([]);

  expect(await importFile()).toMatchObject({ recorded: 0, duplicate: 1 });
  expect(await sendEvent()).toMatchObject({ recorded: 0, duplicate: 1 });
  // As after a crash between recording and deleting.
  await shop.pool.query('insert into annals.outbox overriding system value table sent_already');
  await eventually(async () => (await shop.pool.query('select from annals.outbox')).rowCount).toBe(0);
  await capturing.stop();
  const again = startCapture({ source: shop, history, mapping: mappingOf('captured'), choice: { resync: true } });
  await again.running;
  expect(again.messages).toContain('rows of erased documents still exist at the source; they are skipped');
  await expectNothing();
});

test('a prepared transaction is waited for, and a replication slot that keeps table rows, or catalogue rows where these count', async () => {
  const shop = await createSourceDatabase(source);
  const { pool } = shop;
  const db = createDatabase(pool);
  const ended = (slots: boolean) => olderSnapshotsEnded(db, { slots, wait: 100 });
  await pool.query(`begin; select pg_current_xact_id(); prepare transaction 'canary'`);
  await expect(ended(false)).rejects.toThrow('the prepared transaction canary still sees');
  await pool.query(`commit prepared 'canary'`);
  await ended(true);

  await pool.query(`select pg_create_logical_replication_slot('logical', 'pgoutput'), pg_create_physical_replication_slot('physical')`); // biome-ignore format: one line
  await pool.query('select pg_current_xact_id()');
  await ended(false);
  await expect(ended(true)).rejects.toThrow('the replication slot logical still sees');
  await pool.query(`select pg_drop_replication_slot('logical')`);
  await ended(true);

  const { rows } = await pool.query('select pg_current_xact_id()::text as xmin, pg_current_wal_lsn() as lsn');
  await tellFeedback(shop, 'physical', rows[0]);
  await expect(ended(false)).rejects.toThrow('the replication slot physical still sees');
  await pool.query(`select pg_drop_replication_slot('physical')`);
  await ended(true);
});

/** Reports through a slot, like a standby with hot_standby_feedback, the oldest transaction its queries see. */
async function tellFeedback(
  { url, pool }: SourceDatabase,
  slot: string,
  { xmin, lsn }: { xmin: string; lsn: string },
): Promise<void> {
  const standby = new pg.Client({ connectionString: url, replication: 'true' } as pg.ClientConfig);
  await standby.connect();
  // Kind, time, transaction and its epoch, and both for the catalogue.
  const message = Buffer.alloc(25);
  message.write('h');
  message.writeUInt32BE(Number(xmin), 9);
  standby.query({
    submit(connection: pg.Connection & { sendCopyFromChunk(chunk: Buffer): void }) {
      connection.once('replicationStart', () => connection.sendCopyFromChunk(message));
      connection.query(`START_REPLICATION SLOT ${slot} PHYSICAL ${lsn}`);
    },
    handleCopyData() {},
    handleError() {},
  } as unknown as pg.Submittable);
  const isTold = async () =>
    (await pool.query(`select from pg_replication_slots where slot_name = '${slot}' and xmin is not null`)).rowCount;
  await eventually(isTold).toBe(1);
  await standby.end();
}
