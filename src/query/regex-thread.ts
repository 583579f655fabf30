import { Worker } from 'node:worker_threads';
import type { RegexReply, RegexRequest } from './regex-worker.ts';

/** One thread that runs regex-worker.ts, one request at a time. While it has none, the process may end. */
export class RegexThread {
  readonly #worker: Worker;
  #ended: Error | undefined;
  #settle: { resolve(reply: RegexReply): void; reject(error: Error): void } | undefined;

  /** `memory` is in MiB of heap. A thread that needs more ends. */
  constructor(memory: number) {
    // The compiler rewrites only imports, so this path has to be right for the sources and for the compiled files.
    const file = import.meta.url.endsWith('.ts') ? './regex-worker.ts' : './regex-worker.js';
    this.#worker = new Worker(new URL(file, import.meta.url), {
      execArgv: [],
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: memory },
    });
    this.#worker.unref();
    this.#worker.on('message', (reply: RegexReply) => this.#settle?.resolve(reply));
    this.#worker.on('error', (error: Error) => this.#close(error));
    this.#worker.on('exit', () => this.#close(new Error('The thread of regular expressions has ended')));
  }

  get ended(): boolean {
    return this.#ended !== undefined;
  }

  /** Rejects when the thread ends before it answers. */
  async ask(request: RegexRequest): Promise<RegexReply> {
    if (this.#ended !== undefined) throw this.#ended;
    this.#worker.ref();
    try {
      return await new Promise<RegexReply>((resolve, reject) => {
        this.#settle = { resolve, reject };
        this.#worker.postMessage(request);
      });
    } finally {
      this.#settle = undefined;
      this.#worker.unref();
    }
  }

  async end(): Promise<void> {
    this.#close(new Error('The thread of regular expressions was ended'));
    await this.#worker.terminate();
  }

  #close(reason: Error): void {
    this.#ended ??= reason;
    this.#settle?.reject(reason);
  }
}
