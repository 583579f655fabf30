import { Readable } from 'node:stream';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { createClient } from '../../../src/access/oauth/clients.ts';
import { authenticate } from '../../../src/postgres/backup/manifest.ts';
import { BackupReader } from '../../../src/postgres/backup/read-backup.ts';
import { headerOf } from '../../../src/postgres/backup/tar.ts';
import { createSortIndex, listSortIndexes } from '../../../src/tenants/custom-entities/sort-indexes.ts';
import { archived, backupOf, describedAs, filesOf, readToItsEnd, restored } from '../../support/server/backups.ts';
import {
  createEmptyTestDatabase,
  createSingleTestDatabase,
  createTestDatabaseForThisTest,
  type TestDatabase,
} from '../../support/server/database.ts';
import { testSecretKeys } from '../../support/server/server.ts';

async function emptyDatabase(): Promise<TestDatabase> {
  return await createTestDatabaseForThisTest(createEmptyTestDatabase);
}

/** A database with a tenant that has a client. */
async function sourceWithClient(): Promise<TestDatabase> {
  const source = await createTestDatabaseForThisTest(createSingleTestDatabase);
  await source.pool.query(`insert into tenant (tenant) values ('acme')`);
  await createClient(source.db, { tenant: 'acme', scope: 'changelog.changelog_read' });
  return source;
}

/** Why a backup is refused. A restore reads it in the same way, and leaves the database empty: backup.test.ts. */
const refusal = async (file: Buffer) =>
  await readToItsEnd(file).catch((error: Error) => `${error.name}: ${error.message}`);

test('a backup that somebody has changed is refused, also where it agrees with itself', async () => {
  const backup = await backupOf(await sourceWithClient());
  const files = await filesOf(backup);
  const changed = 'OperatorError: The backup was altered';

  // Without the clients, in the manifest too.
  const fewer = new Map([...files].filter(([name]) => !name.startsWith('tables/oauth_client/')));
  const manifest = JSON.parse(String(files.get('manifest.json')));
  const tables = manifest.tables.filter(({ name }: { name: string }) => name !== 'oauth_client');
  fewer.set('manifest.json', Buffer.from(JSON.stringify({ ...manifest, tables })));
  expect(await refusal(archived(fewer))).toContain(changed);

  const begin = files.get('begin.json') ?? Buffer.alloc(0);
  const backdated = new Map(files).set(
    'begin.json',
    Buffer.from(String(begin).replace('"createdAt": "2', '"createdAt": "1')),
  );
  expect(await refusal(archived(backdated))).toContain(changed);

  const unsigned = new Map(files);
  unsigned.delete('manifest.hmac');
  expect(await refusal(archived(unsigned))).toContain(changed);

  const descriptions = { begin, manifest: files.get('manifest.json') ?? Buffer.alloc(0) };
  const byAnother = new Map(files).set('manifest.hmac', Buffer.from(authenticate(Buffer.alloc(32, 7), descriptions)));
  expect(await refusal(archived(byAnother))).toContain(changed);

  expect(await refusal(archived(files))).toBe('read to its end');
});

test('each key of the list may confirm a backup, and one that does not fit says what that means', async () => {
  const backup = await backupOf(await sourceWithClient());
  const read = async (keys: readonly Uint8Array[]) => {
    const reader = await BackupReader.open(Readable.from([backup]));
    reader.useKeys(keys);
    for await (const _table of reader.tables());
    return reader.manifest.tables.length;
  };
  expect(await read([Buffer.alloc(32, 1), ...testSecretKeys])).toBeGreaterThan(10);
  await expect(read([Buffer.alloc(32, 1)])).rejects.toThrow(
    'The secret key does not fit: the backup was made with another one',
  );
});

test('bytes after the end of a backup are refused, in the archive and after the last frame', async () => {
  const backup = await backupOf(await sourceWithClient());
  const archive = zstdDecompressSync(backup);
  const after = 'OperatorError: The backup was altered: something follows its end';
  expect(await refusal(Buffer.concat([backup, Buffer.from('more')]))).toContain(after);
  expect(await refusal(Buffer.concat([backup, zstdCompressSync(Buffer.from('another frame'))]))).toContain(after);
  expect(await refusal(zstdCompressSync(Buffer.concat([archive, Buffer.alloc(2 * 1024 * 1024)])))).toContain(after);
  // Programs that pack an archive again fill it up.
  expect(await refusal(zstdCompressSync(Buffer.concat([archive, Buffer.alloc(10_240)])))).toBe('read to its end');
});

test('a description that unpacks to more than descriptions have is refused before it is in memory', async () => {
  const bomb = Readable.from(
    (function* () {
      yield headerOf('begin.json', 0o77777777777, 0);
      yield Buffer.alloc(1024 * 1024);
    })(),
  );
  const packed = zstdCompressSync(Buffer.concat(await bomb.toArray()));
  await expect(BackupReader.open(Readable.from([packed]))).rejects.toThrow('not a backup of Annals');
  // In JSON the size is right and the content is long.
  const long = Buffer.alloc(64 * 1024 * 1024, ' ');
  await expect(BackupReader.open(Readable.from([archived(new Map([['begin.json', long]]))]))).rejects.toThrow(
    'not a backup',
  );
});

test('a backup of the format without authentication is refused, and the error names the commit that reads it', async () => {
  const earlier = await describedAs(await backupOf(await sourceWithClient()), { begin: { format: 1 } });
  expect(await refusal(earlier)).toMatch(
    /The backup has format 1, .* Build Annals at commit [0-9a-f]{12}, restore the backup/,
  );
});

test('an index for a sort is rebuilt by what this version makes of its sort, and nothing that the file says is carried out', async () => {
  const source = await sourceWithClient();
  const { name } = await createSortIndex(source.db, 'price.amount:DESC,name');
  const backup = await backupOf(source);
  const target = await emptyDatabase();
  await restored(target, backup);
  expect(await listSortIndexes(target.db)).toEqual(await listSortIndexes(source.db));

  const index = (changes: object) => ({
    table: 'tenant',
    name,
    comment: 'x',
    definition: 'CREATE INDEX evil ON tenant ((1/0))',
    ...changes,
  });
  const evil = [
    index({}),
    index({ name: 'evil' }),
    index({ comment: 'name:ASC' }),
    index({ comment: "a' ; drop table tenant" }),
  ];
  const second = await emptyDatabase();
  await restored(second, await describedAs(backup, { manifest: { indexes: evil } }));
  expect(await listSortIndexes(second.db)).toEqual([]);
  expect((await second.pool.query(`select from pg_class where relname = 'evil'`)).rowCount).toBe(0);
  expect((await second.pool.query('select from tenant')).rowCount).toBe(1);
});
