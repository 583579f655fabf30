import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const launcher = join(import.meta.dirname, '../../bin/annals.js');

/** A command of Annals that is started again on the same port when it ends, as systemd would. */
export class Kept {
  readonly #args: string[];
  readonly #environment: NodeJS.ProcessEnv;
  readonly #onLine: (line: string) => void;
  #child: ChildProcess | undefined;
  #port = '0';
  #isOver = false;
  #ended = Promise.resolve();

  constructor(args: string[], environment: NodeJS.ProcessEnv, onLine: (line: string) => void) {
    this.#args = args;
    this.#environment = environment;
    this.#onLine = onLine;
  }

  /** Resolves with the base URL once it answers. */
  async start(): Promise<string> {
    const child = spawn(process.execPath, [launcher, ...this.#args], {
      env: { PATH: process.env.PATH, ...this.#environment, PORT: this.#port },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    createInterface({ input: child.stderr }).on('line', this.#onLine);
    const line = once(createInterface({ input: child.stdout }), 'line');
    const exit = once(child, 'exit');
    this.#ended = exit.then(async () => {
      while (!this.#isOver && this.#child === child) {
        const started = await this.start().then(
          () => true,
          () => false,
        );
        if (started) return;
      }
    });
    const [baseUrl] = await Promise.race([
      line,
      exit.then(() => Promise.reject(new Error(`${this.#args[0]} has ended`))),
    ]);
    this.#port = new URL(String(baseUrl)).port;
    return String(baseUrl);
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  kill(): void {
    this.#child?.kill('SIGKILL');
  }

  async stop(): Promise<number | null> {
    this.#isOver = true;
    const child = this.#child;
    child?.kill('SIGTERM');
    await this.#ended;
    return child?.exitCode ?? null;
  }
}

/** The processes that a process has started. */
export function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}
