import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A new, empty data folder that the server's account can pass through where the tests run as root. */
export async function makeDataFolder(name = 'data'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'annals-test-'));
  await chmod(folder, 0o711);
  return join(folder, name);
}

/** Where the database of a data folder lives: in it, or where its pointer says. */
export async function homeOf(dataDir: string): Promise<string> {
  const elsewhere = await readFile(join(dataDir, 'postgres.location'), 'utf8').catch(() => undefined);
  return elsewhere?.trim() ?? join(dataDir, 'postgres');
}

/** Removes what makeDataFolder made, and the database's home where it had to be elsewhere. */
export async function removeDataFolder(dataDir: string): Promise<void> {
  await rm(await homeOf(dataDir), { recursive: true, force: true });
  await rm(join(dataDir, '..'), { recursive: true, force: true });
}
