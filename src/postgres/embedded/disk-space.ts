import { statfs } from 'node:fs/promises';
import { findHome } from './home.ts';

/** The disk of the embedded server, in bytes. `free` is what its account can still write. */
export async function readEmbeddedDisk(dataDir: string): Promise<{ total: number; free: number }> {
  const { cluster } = await findHome(dataDir);
  const { blocks, bavail, bsize } = await statfs(cluster);
  return { total: blocks * bsize, free: bavail * bsize };
}
