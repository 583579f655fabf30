import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import pg from 'pg';
import { createEmptyTestDatabase, type TestDatabase } from './database.ts';

const folder = join(import.meta.dirname, '..', '..', 'postgres', 'releases');

/** A database as pg_dump wrote it into a file of `test/postgres/releases/`. */
export async function createReleaseDatabase(release: string): Promise<TestDatabase> {
  const database = await createEmptyTestDatabase();
  const dump = zstdDecompressSync(await readFile(join(folder, `${release}.sql.zst`))).toString();
  // A connection of its own: the dump changes its settings.
  const client = new pg.Client(database.url);
  await client.connect();
  await client.query(dump);
  await client.end();
  return database;
}
