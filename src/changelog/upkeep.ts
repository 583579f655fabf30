import type { Database } from '../db/database.ts';
import type { HttpServer } from '../http/http-server-type.ts';
import { repeat, rest } from '../repeat.ts';
import { foldTenants } from './fold/fold.ts';
import { dropExpired } from './retention/retention.ts';

export interface UpkeepOptions {
  db: Database;
  now: () => number;
}

// Milliseconds. What is not folded is added up at query time, so a second of it costs little.
const foldEvery = 1_000;
const dropEvery = 60_000;
const rowsAtOnce = 2_000;

/** What the change history wants done beside its requests, for as long as the server listens. */
export async function changelogUpkeep(app: HttpServer, { db, now }: UpkeepOptions): Promise<void> {
  const stop = new AbortController();
  const { signal } = stop;
  let work: Promise<unknown> = Promise.resolve();

  const warn = (what: string) => (error: unknown) => app.log.warn({ err: error }, `${what} failed; it is tried again`);
  const folding = { signal, onError: warn('folding the change history') };
  const dropping = { signal, onError: warn('dropping expired history') };
  // As long as the work took: recorders and readers have the other half of the disk.
  const restAfter = (taken: number) => rest(taken, signal);

  app.addHook('onListen', async () => {
    work = Promise.all([
      repeat({ every: foldEvery, turn: () => foldTenants(db, { ...folding, rest: restAfter }), ...folding }),
      repeat({
        every: dropEvery,
        turn: () => dropExpired(db, { ...dropping, now, most: rowsAtOnce, rest: restAfter }),
        ...dropping,
      }),
    ]);
  });
  app.addHook('onClose', async () => {
    stop.abort();
    await work;
  });
}
