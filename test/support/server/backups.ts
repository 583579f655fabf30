import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { tablesToBackUp } from '../../../src/postgres/backup/backed-up-tables.ts';
import { authenticate, type BackedUpIndex } from '../../../src/postgres/backup/manifest.ts';
import { BackupReader } from '../../../src/postgres/backup/read-backup.ts';
import { type RestoredBackup, restoreBackup } from '../../../src/postgres/backup/restore-backup.ts';
import { endOfArchive, headerOf, paddingOf, readArchive } from '../../../src/postgres/backup/tar.ts';
import { writeBackup } from '../../../src/postgres/backup/write-backup.ts';
import { sortIndexStatement } from '../../../src/tenants/custom-entities/sort-indexes.ts';
import type { TestDatabase } from './database.ts';
import { testSecretKeys } from './server.ts';

/** A backup of a database, with files of a few bytes so that tables have many. */
export async function backupOf({ pool }: TestDatabase): Promise<Buffer> {
  const output = new PassThrough();
  const [content] = await Promise.all([
    buffer(output),
    writeBackup(pool, output, { secretKeys: testSecretKeys, now: Date.now(), partBytes: 10_000 }).then(() =>
      output.end(),
    ),
  ]);
  return content;
}

/** Restores as the command does. */
export async function restored(database: TestDatabase, backup: Buffer): Promise<RestoredBackup> {
  const reader = await BackupReader.open(Readable.from([backup]));
  reader.useKeys(testSecretKeys);
  const definitionOf = (index: BackedUpIndex) => sortIndexStatement(database.db, index);
  return await restoreBackup(database.pool, reader, { definitionOf });
}

/** Reads a backup as a restore does, without a database. Rejects where it is none, or was changed. */
export async function readToItsEnd(file: Buffer): Promise<string> {
  const reader = await BackupReader.open(Readable.from([file]));
  reader.useKeys(testSecretKeys);
  for await (const _table of reader.tables());
  return 'read to its end';
}

/** The files of a backup by their names, in order. */
export async function filesOf(backup: Buffer): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>();
  for await (const { name, content } of readArchive(Readable.from([zstdDecompressSync(backup)]))) {
    files.set(name, await buffer(Readable.from(content, { objectMode: false })));
  }
  return files;
}

/** A backup of these files. */
export function archived(files: ReadonlyMap<string, Buffer>): Buffer {
  const parts = [...files].flatMap(([name, content]) => [
    headerOf(name, content.length, 0),
    content,
    paddingOf(content.length),
  ]);
  return zstdCompressSync(Buffer.concat([...parts, endOfArchive()]));
}

/** The backup with other descriptions, confirmed by the same key. */
export async function describedAs(
  backup: Buffer,
  { begin = {}, manifest = {} }: { begin?: object; manifest?: object },
): Promise<Buffer> {
  const files = await filesOf(backup);
  const changed = (name: string, changes: object) =>
    Buffer.from(JSON.stringify({ ...JSON.parse(String(files.get(name))), ...changes }));
  const described = {
    begin: changed('begin.json', begin),
    manifest: changed('manifest.json', { ...begin, ...manifest }),
  };
  files.set('begin.json', described.begin);
  files.set('manifest.json', described.manifest);
  files.set('manifest.hmac', Buffer.from(authenticate(testSecretKeys[0] ?? Buffer.alloc(0), described)));
  return archived(files);
}

/** The backup with another text in it, of the same length. */
export function altered(backup: Buffer, text: string, other: string): Buffer {
  const archive = zstdDecompressSync(backup);
  const at = archive.indexOf(text);
  if (at === -1 || text.length !== other.length) throw new Error(`the backup has no ${text}, or ${other} is longer`);
  archive.write(other, at);
  return zstdCompressSync(archive);
}

/** The rows of each table that a backup has, as a hash of their texts. */
export async function rowsOfTables({ pool }: TestDatabase): Promise<Record<string, string>> {
  const client = await pool.connect();
  try {
    const hashes: Record<string, string> = {};
    for (const { name, columns } of await tablesToBackUp(client)) {
      const { rows } = await client.query(
        // without nulls, which columns of later migrations have
        `select count(*) || ' ' || coalesce(md5(string_agg(r.row, ' ' order by r.row collate "C")), '') as hash
           from (
             select (select jsonb_object_agg(key, value)::text from jsonb_each(to_jsonb(t)) where value <> 'null') as row
               from (select ${columns.join(', ')} from ${name}) t
           ) r`,
      );
      hashes[name] = rows[0].hash;
    }
    return hashes;
  } finally {
    client.release();
  }
}

/** The names of everything that has rows, or counts. */
export async function relationsOf({ pool }: TestDatabase): Promise<string[]> {
  const { rows } = await pool.query(
    `select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'v', 'S', 'm')`,
  );
  return rows.map(({ relname }) => relname);
}
