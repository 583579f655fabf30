import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

const launcher = join(import.meta.dirname, '../../bin/annals.js');

/** Annals' commands, run as an operator runs them, on its embedded PostgreSQL in `data`. */
export class Annals {
  readonly #environment: NodeJS.ProcessEnv;
  readonly #running: ChildProcess[] = [];

  constructor(data: string, source: string) {
    const { DATABASE_URL: _none, ...environment } = process.env;
    this.#environment = {
      ...environment,
      ANNALS_DATA_DIR: data,
      ANNALS_SOURCE_URL: source,
      PORT: '0',
      LOG_LEVEL: 'warn',
    };
  }

  /** Runs a command to its end. Returns what it printed. */
  async run(...args: string[]): Promise<string> {
    const { stdout } = await promisify(execFile)(process.execPath, [launcher, ...args], { env: this.#environment });
    return stdout;
  }

  /** Starts a command that goes on until `stop`. Returns its first line: it is ready. */
  async start(...args: string[]): Promise<string> {
    const child = spawn(process.execPath, [launcher, ...args], {
      env: this.#environment,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#running.push(child);
    const lines = createInterface({ input: child.stdout });
    const [line] = await Promise.race([
      once(lines, 'line'),
      once(child, 'exit').then(([code]) => {
        throw new Error(`annals ${args[0]} ended with ${code}`);
      }),
    ]);
    return String(line);
  }

  async stop(): Promise<void> {
    for (const child of this.#running.splice(0).reverse()) {
      if (child.exitCode !== null) continue;
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
  }
}
