import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

/** Milliseconds. */
const sampleEvery = 20;

/** The parts of the database's work, by the statement that a connection runs. */
const partOfStatement: readonly (readonly [RegExp, string])[] = [
  [/record_entries|copy /i, 'record'],
  [/change_fold/, 'fold'],
  [/create index/i, 'build indexes'],
  [/^(?:vacuum|analyze)/i, 'vacuum and analyse'],
];

/**
 * Samples the processor time of a process and of the connections to its database until it is stopped. The time between two
 * samples counts for the part whose statement the connection had at the second one. It works on Linux only, and on the
 * machine of the database.
 */
export class ProcessorTimes {
  /** Milliseconds by part. */
  readonly parts = new Map<string, number>();
  readonly #before = new Map<number, number>();
  readonly #client: pg.Client;
  readonly #done: Promise<void>;
  #isStopped = false;
  #hasRecorded = false;

  private constructor(client: pg.Client, database: string, process: number | undefined) {
    this.#client = client;
    this.#done = this.#sample(database, process);
  }

  /** `url` names another database of the same server. Without a process, only the connections count. */
  static async start(url: string, database: string, process?: number): Promise<ProcessorTimes> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    return new ProcessorTimes(client, database, process);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#done;
    await this.#client.end();
  }

  async #sample(database: string, process: number | undefined): Promise<void> {
    while (!this.#isStopped) {
      if (process !== undefined) this.#add(process, this.#hasRecorded ? 'service' : 'start of the service');
      const { rows } = await this.#client.query<{ pid: number; query: string; type: string }>(
        'select pid, query, backend_type as type from pg_stat_activity where datname = $1',
        [database],
      );
      for (const { pid, query, type } of rows) {
        const part = partOfStatement.find(([pattern]) => pattern.test(query))?.[1];
        if (part === 'record') this.#hasRecorded = true;
        this.#add(pid, part ?? (type === 'client backend' ? 'other statements' : type));
      }
      await sleep(sampleEvery);
    }
  }

  #add(process: number, part: string): void {
    const now = millisecondsOf(process);
    if (now === undefined) return;
    this.parts.set(part, (this.parts.get(part) ?? 0) + now - (this.#before.get(process) ?? 0));
    this.#before.set(process, now);
  }
}

/** The processor time of a process with all its threads; undefined if it has ended. */
function millisecondsOf(process: number): number | undefined {
  try {
    const threads = readdirSync(`/proc/${process}/task`);
    const times = threads.map((thread) =>
      Number(readFileSync(`/proc/${process}/task/${thread}/schedstat`, 'utf8').split(' ', 1)[0]),
    );
    return times.reduce((sum, nanoseconds) => sum + nanoseconds / 1e6, 0);
  } catch {
    return undefined;
  }
}
