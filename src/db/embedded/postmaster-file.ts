import { readlink, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { readIfThere } from '../write-once.ts';

/** What a PostgreSQL server writes of itself into its cluster, see PostgreSQL's miscadmin.h. */
export interface PostmasterFile {
  pid: number;
  port: number;
  /** `starting`, `stopping`, `ready` or `standby`; empty in the first moments. */
  status: string;
}

/** Reads postmaster.pid; undefined where the cluster has none or it is not yet whole. */
export async function readPostmasterFile(cluster: string): Promise<PostmasterFile | undefined> {
  const text = await readIfThere(join(cluster, 'postmaster.pid'));
  if (text === undefined) return undefined;
  const lines = text.split('\n').map((line) => line.trim());
  const pid = Math.abs(Number(lines[0]));
  if (!Number.isInteger(pid) || pid === 0) return undefined;
  return { pid, port: Number(lines[3] ?? 0), status: lines[7] ?? '' };
}

/** Whether a process with this id exists, whoever owns it. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

/**
 * Whether the process is a PostgreSQL that serves the cluster. Process ids are used again, soon so in containers;
 * but each process of a server works in the folder of its cluster. Undefined where the platform does not tell.
 */
export async function servesCluster(pid: number, cluster: string): Promise<boolean | undefined> {
  if (!isAlive(pid)) return false;
  if (process.platform !== 'linux') return undefined;
  try {
    return (await readlink(`/proc/${pid}/cwd`)) === (await realpath(cluster));
  } catch {
    // Gone in the meantime, a zombie, or another user's: none of them ours.
    return false;
  }
}
