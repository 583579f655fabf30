import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { join } from 'node:path';

const compiled = join(import.meta.dirname, '../../../node_modules/.cache/test-scripts');

/** Runs a program of this folder in a process of its own. Node keeps what it has compiled of it, which is more than half of a start. */
export function startScript(name: string, args: string[], stdio: StdioOptions): ChildProcess {
  return spawn(process.execPath, [join(import.meta.dirname, name), ...args], {
    stdio,
    env: { ...process.env, NODE_COMPILE_CACHE: compiled },
  });
}
