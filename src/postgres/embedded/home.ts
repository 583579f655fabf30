import { randomBytes } from 'node:crypto';
import { chmod, chown, mkdir, realpath, rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode, OperatorError } from '../../core/errors.ts';
import { readIfThere, writeOnce } from '../write-once.ts';
import { findBinaries, programPath } from './binaries.ts';
import { canEnter, findServerUser, isRoot, type ServerUser, succeedsAs, userWithId } from './server-user.ts';

/** The folder of an embedded database: its cluster, locks, password, port and log. */
export interface Home {
  folder: string;
  cluster: string;
  /** The account of the server; undefined: that of the service. */
  user: ServerUser | undefined;
  /** A line with the home's path, if it is outside its data folder. */
  notice: string | undefined;
}

/** The parent folder of homes that cannot be in their data folder (contract 1: as root). */
const systemFolder = '/var/lib/annals';

/** Finds the home of a data folder. The first call chooses it and writes a pointer. */
export async function findHome(dataDir: string): Promise<Home> {
  await mkdir(dataDir, { recursive: true }).catch((cause) => refuse(`cannot create the data folder ${dataDir}`, cause));
  const dataFolder = await realpath(dataDir);
  const beside = join(dataFolder, 'postgres');
  const pointer = join(dataFolder, 'postgres.location');
  const elsewhere = (await readIfThere(pointer))?.trim();

  if (!isRoot()) return await homeIn(elsewhere ?? beside, undefined);
  if (elsewhere !== undefined) return awayFrom(dataFolder, await homeIn(elsewhere, await ownerOf(elsewhere)));
  const owner = await ownerOf(join(beside, 'cluster'));
  if (owner !== undefined) return await homeIn(beside, owner);
  const user = await findServerUser();
  if (await canServeFrom(user, dataFolder)) return await homeIn(beside, user);
  return awayFrom(dataFolder, await homeIn(await makeElsewhere(pointer, user), user));
}

/** Gives a file or folder to the server's account, if the service is root. */
export async function giveTo(user: ServerUser | undefined, path: string): Promise<void> {
  if (user !== undefined) await chown(path, user.uid, user.gid);
}

async function canServeFrom(user: ServerUser, dataFolder: string): Promise<boolean> {
  if (!(await canEnter(user, dataFolder))) return false;
  return await succeedsAs(user, programPath(await findBinaries(), 'postgres'), ['--version']);
}

async function homeIn(folder: string, user: ServerUser | undefined): Promise<Home> {
  try {
    await mkdir(folder, { mode: 0o700 }).then(
      () => giveTo(user, folder),
      (error) => {
        if (!hasCode(error, 'EEXIST')) throw error;
      },
    );
    await stat(join(folder, '.'));
    return { folder, cluster: join(folder, 'cluster'), user, notice: undefined };
  } catch (cause) {
    return refuse(`cannot use the folder ${folder}`, cause);
  }
}

async function makeElsewhere(pointer: string, user: ServerUser): Promise<string> {
  const folder = join(systemFolder, randomBytes(6).toString('hex'));
  try {
    await mkdir(systemFolder, { recursive: true });
    // The server's account must be able to enter the folder, whatever our umask.
    await chmod(systemFolder, 0o755);
    await mkdir(folder, { mode: 0o700 });
    await giveTo(user, folder);
  } catch (cause) {
    return refuse(`the user ${user.name} cannot reach the data folder, and ${folder} cannot be created`, cause);
  }
  const chosen = (await writeOnce(pointer, `${folder}\n`, 0o644)).trim();
  if (chosen !== folder) await rm(folder, { recursive: true });
  return chosen;
}

function awayFrom(dataFolder: string, home: Home): Home {
  const notice =
    `the account "${home.user?.name}", which PostgreSQL runs as, cannot reach this program or ${dataFolder}: ` +
    `the database lives in ${home.folder}`;
  return { ...home, notice };
}

/** The account that owns a folder, if PostgreSQL can run as it. */
async function ownerOf(folder: string): Promise<ServerUser | undefined> {
  const found = await stat(folder).catch((error) => {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  });
  if (found === undefined || found.uid === 0) return undefined;
  const user = await userWithId(found.uid);
  if (user === undefined) return refuse(`${folder} belongs to the user id ${found.uid}, which is not in /etc/passwd`);
  return user;
}

function refuse(message: string, cause?: unknown): never {
  const code = cause instanceof Error && 'code' in cause ? ` (${cause.code})` : '';
  throw new OperatorError(
    `The embedded database has no place: ${message}${code}. ` +
      'Set ANNALS_DATA_DIR to a folder of your own, or DATABASE_URL to a PostgreSQL 15 or later',
    { cause },
  );
}

/** The disk of the embedded server, in bytes. `free` is what its account can still write. */
export async function readEmbeddedDisk(dataDir: string): Promise<{ total: number; free: number }> {
  const { cluster } = await findHome(dataDir);
  const { blocks, bavail, bsize } = await statfs(cluster);
  return { total: blocks * bsize, free: bavail * bsize };
}
