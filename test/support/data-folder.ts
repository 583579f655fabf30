import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A new, empty data folder that the server's account can pass through where the tests run as root. */
export async function makeDataFolder(name = 'data'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'annals-test-'));
  await chmod(folder, 0o711);
  return join(folder, name);
}

/** Removes what makeDataFolder made, and the database's home where it had to be elsewhere. */
export async function removeDataFolder(dataDir: string): Promise<void> {
  const elsewhere = await readFile(join(dataDir, 'postgres.location'), 'utf8').catch(() => '');
  if (elsewhere !== '') await rm(elsewhere.trim(), { recursive: true, force: true });
  await rm(join(dataDir, '..'), { recursive: true, force: true });
}
