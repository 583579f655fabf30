import { readlink, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { readIfThere } from '../write-once.ts';

/** The content of postmaster.pid, which a PostgreSQL server writes into its cluster (see PostgreSQL's miscadmin.h). */
export interface PostmasterFile {
  pid: number;
  port: number;
  /** `starting`, `stopping`, `ready` or `standby`; empty in the first moments. */
  status: string;
}

/** Reads postmaster.pid; undefined where there is none or it is not complete yet. */
export async function readPostmasterFile(cluster: string): Promise<PostmasterFile | undefined> {
  const text = await readIfThere(join(cluster, 'postmaster.pid'));
  if (text === undefined) return undefined;
  const lines = text.split('\n').map((line) => line.trim());
  const pid = Math.abs(Number(lines[0]));
  if (!Number.isInteger(pid) || pid === 0) return undefined;
  return { pid, port: Number(lines[3] ?? 0), status: lines[7] ?? '' };
}

/** Whether a process with this id exists, of any user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

/**
 * Whether the process is a PostgreSQL that serves the cluster. Systems reuse process ids, containers soon. But each process of a
 * server has the folder of its cluster as its working folder. Undefined where the platform does not tell.
 */
export async function servesCluster(pid: number, cluster: string): Promise<boolean | undefined> {
  if (!isAlive(pid)) return false;
  if (process.platform !== 'linux') return undefined;
  try {
    return (await readlink(`/proc/${pid}/cwd`)) === (await realpath(cluster));
  } catch {
    // The process has ended, is a zombie, or belongs to another user: it is not ours.
    return false;
  }
}
