import { cp, lchown, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Binaries, programPath } from './binaries.ts';
import { giveTo, type Home } from './home.ts';
import { type ServerUser, succeedsAs } from './server-user.ts';

/**
 * The binaries where the server's account can run them, otherwise a copy in its home, one for each version (contract 1: as root).
 * Only one process at a time may call it.
 */
export async function reachableBinaries(home: Home, binaries: Binaries): Promise<Binaries> {
  const { user } = home;
  if (user === undefined || (await runs(user, binaries))) return binaries;
  const copies = join(home.folder, 'binaries');
  const copy: Binaries = { folder: join(copies, binaries.version), version: binaries.version };
  if (await runs(user, copy)) return copy;
  // No server runs on this cluster now, so nobody uses older copies.
  await rm(copies, { recursive: true, force: true });
  const draft = join(copies, `${binaries.version}.new`);
  await cp(binaries.folder, draft, { recursive: true, verbatimSymlinks: true });
  await giveTo(user, copies);
  await giveAll(user, draft);
  await rename(draft, copy.folder);
  return copy;
}

function runs(user: ServerUser, binaries: Binaries): Promise<boolean> {
  return succeedsAs(user, programPath(binaries, 'postgres'), ['--version']);
}

async function giveAll(user: ServerUser, folder: string): Promise<void> {
  await lchown(folder, user.uid, user.gid);
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    await lchown(join(entry.parentPath, entry.name), user.uid, user.gid);
  }
}
