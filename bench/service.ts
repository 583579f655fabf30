import { type ChildProcess, fork, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { NewClient } from '../src/access/oauth/clients.ts';
import { launcher } from '../test/support/server/command.ts';

/** A process of Annals that a benchmark measures, from the sources. */
export interface Service {
  readonly process: ChildProcess;
  readonly pid: number;
  readonly baseUrl: string;
  /** Milliseconds of processor time of the longest turn of the event loop since the last call. */
  maxTurn(): Promise<number>;
  /** Bytes of the heap and beside it, after a collection. */
  memory(): Promise<number>;
  stop(): Promise<void>;
}

const secretKey = randomBytes(32).toString('base64');

/** What every process of Annals of a run shares. */
export function environmentOf(databaseUrl: string, more: Record<string, string> = {}): Record<string, string> {
  const base = { PATH: process.env.PATH ?? '', PORT: '0', LOG_LEVEL: 'error' };
  return { ...base, DATABASE_URL: databaseUrl, ANNALS_SECRET_KEY: secretKey, ...more };
}

/** Starts `annals serve` or another command that prints its base URL first. BENCH_NOW stops its clock. */
export async function startService(environment: Record<string, string>, command = 'serve'): Promise<Service> {
  const child = fork(join(import.meta.dirname, 'annals.ts'), [command], {
    env: environment,
    // The log of every request would hide what the benchmark prints.
    stdio: ['ignore', 'pipe', environment.LOG_LEVEL === 'info' ? 'ignore' : 'inherit', 'ipc'],
  });
  const baseUrl = await firstLineOf(child);
  return {
    process: child,
    pid: child.pid ?? 0,
    baseUrl,
    async maxTurn() {
      child.send('read');
      const [{ maxTurn }] = (await once(child, 'message')) as [{ maxTurn: number }];
      return maxTurn;
    },
    async memory() {
      child.send('memory');
      const [{ memory }] = (await once(child, 'message')) as [{ memory: number }];
      return memory;
    },
    stop: () => stop(child),
  };
}

export async function firstLineOf(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error('the process has no stdout');
  for await (const line of createInterface({ input: child.stdout })) {
    child.stdout.resume();
    return line;
  }
  throw new Error('the process ended before its first line');
}

/** Ends a process: with SIGTERM, and with SIGKILL after 20 s. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 20_000);
  await ended;
  clearTimeout(timer);
}

/** A command of `bin/annals.js` that is started again on its port whenever it ends, as systemd would. */
export class Supervised {
  /** The first line on stdout: the base URL, of a command with a port. */
  readonly ready: Promise<string>;
  readonly name: string;
  starts = 0;
  #process: ChildProcess | undefined;
  #isOver = false;
  readonly #ended: Promise<void>;

  /** `onLog` gets a message of the log without what differs from line to line. */
  constructor(args: string[], environment: Record<string, string>, onLog: (message: string) => void) {
    this.name = args[0] ?? '';
    const { promise, resolve } = Promise.withResolvers<string>();
    this.ready = promise;
    this.#ended = this.#keep(args, environment, onLog, resolve);
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  kill(): void {
    this.#process?.kill('SIGKILL');
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    this.#process?.kill('SIGTERM');
    await this.#ended;
  }

  async #keep(
    args: string[],
    environment: Record<string, string>,
    onLog: (message: string) => void,
    onReady: (line: string) => void,
  ): Promise<void> {
    for (let port = '0'; !this.#isOver; await sleep(500)) {
      this.starts += 1;
      const child = spawn(process.execPath, [launcher, ...args], {
        env: { ...environment, PORT: port },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      this.#process = child;
      createInterface({ input: child.stdout }).once('line', (line) => {
        if (line.startsWith('http')) port = new URL(line).port;
        onReady(line);
      });
      createInterface({ input: child.stderr }).on('line', (line) => onLog(`${this.name}: ${messageOf(line)}`));
      await once(child, 'exit');
    }
  }
}

function messageOf(line: string): string {
  try {
    const { level, msg, err } = JSON.parse(line);
    const cause = err === undefined ? '' : ` (${err.code ?? err.type}: ${err.message})`;
    return `${level} ${String(msg).replaceAll(/\d+ ms/g, '… ms')}${cause}`.slice(0, 200);
  } catch {
    return line.slice(0, 200);
  }
}

/** Counts outcomes by name. */
export class Counts {
  readonly #counts = new Map<string, number>();

  add(name: string, times = 1): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + times);
  }

  /** Such as `read: 200 × 12`, in order. */
  get lines(): string[] {
    return [...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, count]) => `${name} × ${count}`);
  }
}

export function basicOf({ clientId, clientSecret }: Pick<NewClient, 'clientId' | 'clientSecret'>): string {
  return `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`;
}

/** Gets an access token for the client. Throws if the service gives none. */
export async function tokenOf(baseUrl: string, client: Pick<NewClient, 'clientId' | 'clientSecret'>): Promise<string> {
  const response = await fetch(`${baseUrl}/oauth/token`, {
    method: 'POST',
    headers: { authorization: basicOf(client) },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  });
  const { access_token: token } = (await response.json()) as { access_token?: string };
  if (token === undefined) throw new Error(`no token: ${response.status}`);
  return token;
}
