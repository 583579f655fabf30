import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findBinaries } from '../../../src/postgres/embedded/binaries.ts';
import { findHome } from '../../../src/postgres/embedded/home.ts';
import { ensureCluster } from '../../../src/postgres/embedded/initialise.ts';
import { reachableBinaries } from '../../../src/postgres/embedded/reachable-binaries.ts';

/** A new, empty data folder that the server's account can pass through where the tests run as root. */
export async function makeDataFolder(name = 'data'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'annals-test-'));
  await chmod(folder, 0o711);
  return join(folder, name);
}

/** A new data folder whose database no server has run on yet, to be copied. */
export async function initialiseDataFolder(): Promise<string> {
  const dataDir = await makeDataFolder();
  const home = await findHome(dataDir);
  await ensureCluster(home, await reachableBinaries(home, await findBinaries()), 'none');
  return dataDir;
}

/** A new data folder with a copy of the database of another one, where no server runs: to make one takes a second of processor time. */
export async function copyDataFolder(from: string): Promise<string> {
  const dataDir = await makeDataFolder();
  const { folder } = await findHome(dataDir);
  await promisify(execFile)('cp', ['-a', `${await homeOf(from)}/.`, folder]);
  return dataDir;
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
