import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { createEmptyTestDatabase, type TestDatabase } from './database.ts';

const folder = join(import.meta.dirname, '..', '..', 'postgres', 'releases');

/**
 * The data that is put into databases of releases, as two scripts: the second comes after what it waits for is folded. With fewer
 * entries than 4,000, an eighth of them waits to be folded as well.
 */
export async function releaseData(entries = 4_000): Promise<[string, string]> {
  const text = (await readFile(join(folder, 'data.sql'), 'utf8'))
    .replace('generate_series(1, 4000)', `generate_series(1, ${entries})`)
    .replaceAll(' 3500 ', ` ${Math.floor(entries / 800) * 700} `);
  const [before = '', after = ''] = text.split('-- fold\n');
  return [before, after];
}

/** The file names of the migrations of a release, in order, with their texts. */
async function releaseMigrations(release: '2a90738' | 'c471d83'): Promise<[string, string][]> {
  const compressed = await readFile(join(folder, 'without-checksums.json.zst'));
  const releases = JSON.parse(zstdDecompressSync(compressed).toString()) as Record<string, Record<string, string>>;
  const files = { ...releases['2a90738'], ...releases[release] };
  return Object.entries(files).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** An empty database as a release from before checksums made it. `edit` changes a migration before it runs. */
export async function createReleaseDatabase(
  release: '2a90738' | 'c471d83',
  edit: (name: string, text: string) => string | undefined = (_name, text) => text,
): Promise<TestDatabase> {
  const database = await createEmptyTestDatabase();
  await database.pool.query(
    'create table migration (number integer primary key, name text not null, ran_at timestamptz not null default now())',
  );
  for (const [name, text] of await releaseMigrations(release)) {
    const edited = edit(name, text);
    if (edited === undefined) continue;
    await database.pool.query(edited);
    await database.pool.query('insert into migration (number, name) values ($1, $2)', [Number(name.slice(0, 4)), name]);
  }
  return database;
}
