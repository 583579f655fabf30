import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../db/database.ts';
import type { HttpServer } from '../http/http-server.ts';
import { foldHistory, tenantsToFold } from './fold.ts';
import { dropExpired, readHorizons } from './retention.ts';

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
  let work: Promise<unknown> = Promise.resolve();

  app.addHook('onListen', async () => {
    work = Promise.all([
      repeat('folding the change history', foldEvery, async () => {
        for (const tenant of await tenantsToFold(db)) {
          if (stop.signal.aborted) return;
          await foldHistory(db, tenant);
        }
      }),
      repeat('dropping expired history', dropEvery, async () => {
        for (const { tenant, horizon } of await readHorizons(db, now())) {
          // As long a rest as the work took: recorders and readers have the other half of the disk.
          while (!stop.signal.aborted) {
            const begun = performance.now();
            if ((await dropExpired(db, tenant, horizon, rowsAtOnce)) === 0) break;
            await rest(performance.now() - begun);
          }
        }
      }),
    ]);
  });
  app.addHook('onClose', async () => {
    stop.abort();
    await work;
  });

  async function repeat(what: string, every: number, turn: () => Promise<void>): Promise<void> {
    while (!stop.signal.aborted) {
      const begun = performance.now();
      try {
        await turn();
      } catch (error) {
        app.log.warn({ err: error }, `${what} failed; it is tried again`);
      }
      await rest(Math.max(every, performance.now() - begun));
    }
  }

  async function rest(milliseconds: number): Promise<void> {
    await sleep(milliseconds, undefined, { signal: stop.signal, ref: false }).catch(() => {});
  }
}
