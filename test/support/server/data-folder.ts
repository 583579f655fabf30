import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { findBinaries } from '../../../src/postgres/embedded/binaries.ts';
import { findHome } from '../../../src/postgres/embedded/home.ts';
import { ensureCluster } from '../../../src/postgres/embedded/initialise.ts';
import { reachableBinaries } from '../../../src/postgres/embedded/open-embedded-database.ts';

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

/**
 * A new data folder with a copy of the database of another one, where no server runs: to make one takes a second of
 * processor time.
 */
export async function copyDataFolder(from: string, name?: string): Promise<string> {
  const dataDir = await makeDataFolder(name);
  const { folder, cluster } = await findHome(dataDir);
  await promisify(execFile)('cp', ['-a', `${await homeOf(from)}/.`, folder]);
  await shortenSignIn(join(cluster, 'pg_hba.conf'));
  return dataDir;
}

/**
 * A run signs in some ten thousand times. A password that is sent as it is takes a quarter less than one that is proved
 * to be known.
 */
async function shortenSignIn(hbaFile: string): Promise<void> {
  const rules = await readFile(hbaFile, 'utf8');
  await writeFile(hbaFile, rules.replaceAll('scram-sha-256', 'password'));
}

/** The server hashes what was sent: once, not 4,096 times, for a password that needs no protection. */
export async function hashOnce(url: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query('set scram_iterations = 1');
  await client.query(`alter role current_user password ${client.escapeLiteral(new URL(url).password)}`);
  await client.end();
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
