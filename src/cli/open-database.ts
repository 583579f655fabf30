import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { type Config, ConfigError, readConfig } from '../core/config/config.ts';
import { OperatorError } from '../core/errors.ts';
import { fixSearchPath } from '../postgres/connections/search-path.ts';
import { resolveTls } from '../postgres/connections/tls.ts';
import { openEmbeddedDatabase } from '../postgres/embedded/open-embedded-database.ts';
import { readIfThere, writeOnce } from '../postgres/write-once.ts';

/** The database of the settings, with the keys of its sealed values. */
interface OpenDatabase {
  url: string;
  secretKeys: Buffer[];
  /** Releases the embedded database; does nothing for any other. */
  release(): Promise<void>;
}

/** Opens DATABASE_URL, or the embedded database and the key in its data folder (contract 1: ANNALS_SECRET_KEY). */
export async function openDatabase(config: Config, tell: (line: string) => void): Promise<OpenDatabase> {
  if (config.databaseUrl !== undefined) {
    const url = await openUrl(config.databaseUrl, tell);
    return { url, secretKeys: config.secretKeys, release: async () => {} };
  }
  const embedded = await openEmbeddedDatabase({ dataDir: config.dataDir, log: tell });
  try {
    const secretKeys = config.secretKeys.length > 0 ? config.secretKeys : await keptSecretKeys(config.dataDir);
    return { url: await fixSearchPath(embedded.url, tell), secretKeys, release: embedded.release };
  } catch (error) {
    await embedded.release();
    throw error;
  }
}

/** DATABASE_URL as every connection uses it: with TLS and the search path resolved. */
export async function openUrl(databaseUrl: string, tell: (line: string) => void): Promise<string> {
  return await fixSearchPath(await resolveTls(databaseUrl), tell);
}

/** The keys of the settings or the data folder. Unlike `openDatabase` it creates none. */
export async function findSecretKeys({ secretKeys, dataDir }: Config): Promise<Buffer[]> {
  if (secretKeys.length > 0) return secretKeys;
  const path = join(dataDir, 'secret.key');
  const kept = await readIfThere(path);
  if (kept !== undefined) return keysOf(kept, path);
  throw new OperatorError(
    `the secret key is missing: set ANNALS_SECRET_KEY, or put the secret.key of the backup's installation there: ${path}`,
  );
}

/** The keys of a data folder; the first call creates one. The file may contain a list, as ANNALS_SECRET_KEY may. */
export async function keptSecretKeys(dataDir: string): Promise<Buffer[]> {
  const path = join(dataDir, 'secret.key');
  const kept = await writeOnce(path, `${randomBytes(32).toString('base64')}\n`).catch((error) => {
    throw new OperatorError(`the key of the data folder, ${path}, can be neither read nor created: ${error.message}`);
  });
  return keysOf(kept, path);
}

function keysOf(content: string, path: string): Buffer[] {
  try {
    const keys = readConfig({ ANNALS_SECRET_KEY: content }).secretKeys;
    if (keys.length > 0) return keys;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
  }
  throw new OperatorError(
    `${path} does not hold a key of 32 bytes in base64. Put the right one back, or set ANNALS_SECRET_KEY`,
  );
}
