import { readdirSync, readFileSync } from 'node:fs';

// Reads /proc: Linux alone, and the database has to run on this machine. A process that has ended counts as zero.

/** Milliseconds of processor time of a process with all its threads. */
export function processTime(pid: number): number {
  return threadsOf(pid).reduce((sum, thread) => sum + Number(read(thread).split(' ', 1)[0]) / 1e6, 0);
}

/** Milliseconds of processor time of all processes of a database server, ended ones included. Precise to 10 ms each. */
export function serverTime(postmaster: number): number {
  const pids = [postmaster, ...childrenOf(postmaster)];
  return pids.reduce((sum, pid) => {
    const [, , , , , , , , , , , user = 0, system = 0, endedUser = 0, endedSystem = 0] = statOf(pid);
    return sum + 10 * (user + system + (pid === postmaster ? endedUser + endedSystem : 0));
  }, 0);
}

export function childrenOf(pid: number): number[] {
  return read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number);
}

/** The process that started this one. */
export function parentOf(pid: number): number {
  return statOf(pid)[1] ?? 0;
}

/** MiB of resident memory of a process: now, and the peak of its life. */
export function memoryOf(pid: number): { now: number; peak: number } {
  const status = read(`/proc/${pid}/status`);
  const mebibytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0) / 1024;
  return { now: mebibytes('VmRSS'), peak: mebibytes('VmHWM') };
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map((thread) => `/proc/${pid}/task/${thread}/schedstat`);
  } catch {
    return [];
  }
}

/** The fields of /proc/PID/stat after the name: state, parent, … */
function statOf(pid: number): number[] {
  const text = read(`/proc/${pid}/stat`);
  return text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
