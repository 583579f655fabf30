import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { join } from 'node:path';

/** The environment in which Node keeps what it has compiled of a program, which is more than half of a start. */
export const keepsCompiled = {
  NODE_COMPILE_CACHE: join(import.meta.dirname, '../../../node_modules/.cache/test-scripts'),
} as const;

/** Runs a program of this folder in a process of its own. */
export function startScript(name: string, args: string[], stdio: StdioOptions, environment: object = {}): ChildProcess {
  return spawn(process.execPath, [join(import.meta.dirname, name), ...args], {
    stdio,
    env: { ...process.env, ...keepsCompiled, ...environment },
  });
}
