import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { tablesToBackUp } from '../../../src/db/backup/backed-up-tables.ts';
import { BackupReader } from '../../../src/db/backup/read-backup.ts';
import { type RestoredBackup, restoreBackup } from '../../../src/db/backup/restore-backup.ts';
import { writeBackup } from '../../../src/db/backup/write-backup.ts';
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

export async function restored(database: TestDatabase, backup: Buffer): Promise<RestoredBackup> {
  return await restoreBackup(database.pool, await BackupReader.open(Readable.from([backup])));
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
        `select count(*) || ' ' || coalesce(md5(string_agg(t::text, ' ' order by t::text collate "C")), '') as hash
           from (select ${columns.join(', ')} from ${name}) t`,
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
