import { readFileSync } from 'node:fs';
import type pg from 'pg';

/** Milliseconds of processor time that this process and some backends of the database have taken, and of the clock. */
export interface Cost {
  service: number;
  database: number;
  clock: number;
}

/** Knows the backends that a pool's or a client's statements run in. They must run on this machine. */
export class Backends {
  readonly #ids = new Set<number>();

  async addClient(client: pg.Client): Promise<void> {
    const { rows } = await client.query('select pg_backend_pid() as id');
    this.#ids.add(Number(rows[0].id));
  }

  /** Takes in the connections that the pool makes from now on. */
  addPool(pool: pg.Pool): void {
    pool.on('connect', (client) => {
      if ('processID' in client) this.#ids.add(Number(client.processID));
    });
  }

  /** Milliseconds that all of them have run so far; one that has ended counts no more. */
  milliseconds(): number {
    let nanoseconds = 0;
    for (const id of this.#ids) nanoseconds += nanosecondsOf(id);
    return nanoseconds / 1e6;
  }
}

function nanosecondsOf(id: number): number {
  try {
    return Number(readFileSync(`/proc/${id}/schedstat`, 'utf8').split(' ', 1)[0]);
  } catch {
    return 0;
  }
}

/** What the work costs; nothing else may run in this process meanwhile. */
export async function costOf(backends: Backends, work: () => Promise<unknown>): Promise<Cost> {
  const database = backends.milliseconds();
  const clock = performance.now();
  const service = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(service);
  return {
    service: (user + system) / 1000,
    clock: performance.now() - clock,
    database: Math.max(0, backends.milliseconds() - database),
  };
}

/** The value below which the share of the values lies; 0.5 is the median. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
