import { readdir, readFile } from 'node:fs/promises';

export interface ProcessTime {
  readonly parent: number;
  /** Microseconds of the process, and of its children that have ended. */
  readonly own: number;
  readonly ofChildren: number;
}

/** What a process has used; undefined where there is none. Linux alone. */
export async function timeOf(pid: number): Promise<ProcessTime | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  const fields = text
    ?.slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  if (fields === undefined) return undefined;
  const [, parent = 0, , , , , , , , , , user = 0, system = 0, childUser = 0, childSystem = 0] = fields;
  return { parent, own: (user + system) * tick, ofChildren: (childUser + childSystem) * tick };
}

const tick = 10_000;

/** Microseconds that this process and a connection of the database have used. */
export async function processorTime(backend: number): Promise<number> {
  const { user, system } = process.cpuUsage();
  return user + system + ((await timeOf(backend))?.own ?? 0);
}

/** Microseconds that all processes of the database of a connection have used, those that have ended included. */
export async function databaseTime(backend: number): Promise<number> {
  const parent = (await timeOf(backend))?.parent;
  let used = 0;
  for (const name of await readdir('/proc')) {
    const found = /^\d+$/.test(name) ? await timeOf(Number(name)) : undefined;
    if (found?.parent === parent) used += found?.own ?? 0;
    else if (found !== undefined && Number(name) === parent) used += found.own + found.ofChildren;
  }
  return used;
}
