import { readdirSync, readFileSync } from 'node:fs';
import { findHome } from '../../src/postgres/embedded/home.ts';
import { readPostmasterFile } from '../../src/postgres/embedded/postmaster-file.ts';

// Linux gives processor time in hundredths of a second.
const millisecondsOfTick = 10;

/** The processor time in milliseconds that the embedded server of a data folder has used, all its processes together. */
export async function databaseTime(dataFolder: string): Promise<number> {
  const { cluster } = await findHome(dataFolder);
  const pid = (await readPostmasterFile(cluster))?.pid;
  if (pid === undefined) throw new Error(`no server is at work in ${cluster}`);
  const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const ticks = processes.map(statOf).map((stat) => {
    if (stat.pid === pid) return stat.own + stat.ended;
    return stat.parent === pid ? stat.own : 0;
  });
  return ticks.reduce((sum, one) => sum + one, 0) * millisecondsOfTick;
}

/** The processor time in milliseconds that a process has used. */
export function processTime(pid: number): number {
  return statOf(String(pid)).own * millisecondsOfTick;
}

/** What /proc tells of a process, its times in ticks; `ended`: of children that have ended. */
function statOf(process: string): { pid: number; parent: number; own: number; ended: number } {
  try {
    const [, rest = ''] = readFileSync(`/proc/${process}/stat`, 'utf8').split(') ');
    const fields = rest.split(' ');
    const at = (index: number) => Number(fields[index] ?? 0);
    return { pid: Number(process), parent: at(1), own: at(11) + at(12), ended: at(13) + at(14) };
  } catch {
    return { pid: Number(process), parent: 0, own: 0, ended: 0 };
  }
}
