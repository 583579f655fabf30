import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Counts } from './counts.ts';

const launcher = join(import.meta.dirname, '../../bin/annals.js');

/** A command that is started again when it ends, as systemd would. Its first line on stdout is `ready`. */
export class Supervised {
  readonly name: string;
  readonly ready: Promise<string>;
  starts = 0;
  #process: ChildProcess | undefined;
  #isOver = false;
  readonly #ended: Promise<void>;

  constructor(args: string[], environment: NodeJS.ProcessEnv, messages: Counts) {
    this.name = args[0] ?? '';
    const { promise, resolve } = Promise.withResolvers<string>();
    this.ready = promise;
    this.#ended = this.#keep(args, environment, messages, resolve);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    this.#process?.kill('SIGTERM');
    await this.#ended;
  }

  async #keep(
    args: string[],
    environment: NodeJS.ProcessEnv,
    messages: Counts,
    onReady: (line: string) => void,
  ): Promise<void> {
    let port = '0';
    while (!this.#isOver) {
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
      createInterface({ input: child.stderr }).on('line', (line) => messages.add(`${this.name}: ${messageOf(line)}`));
      const [code] = await once(child, 'exit');
      if (this.#isOver) return;
      process.stderr.write(`annals ${this.name} ended with ${code} and is started again\n`);
      await sleep(1_000);
    }
  }
}

/** What a line of the log says, without what differs from line to line. */
function messageOf(line: string): string {
  try {
    const { level, msg, err } = JSON.parse(line);
    return `${level} ${String(msg).replaceAll(/\d+ ms/g, '… ms')}${err === undefined ? '' : ` (${err.code ?? err.type}: ${err.message})`}`;
  } catch {
    return line;
  }
}
