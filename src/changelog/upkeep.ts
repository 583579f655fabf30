import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../db/database.ts';
import type { HttpServer } from '../http/http-server.ts';
import { entriesOfPortion, foldPortion, tenantsToFold } from './fold.ts';
import { dropExpired } from './retention.ts';

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
      repeat('folding the change history', foldEvery, foldAll),
      repeat('dropping expired history', dropEvery, async () => {
        await dropExpired(db, {
          now,
          most: rowsAtOnce,
          signal: stop.signal,
          // As long as the work took: recorders and readers have the other half of the disk.
          rest,
          onError: (error) => failed('dropping expired history', error),
        });
        return false;
      }),
    ]);
  });
  app.addHook('onClose', async () => {
    stop.abort();
    await work;
  });

  /** A portion of each tenant, so that one with much to fold keeps nobody waiting for long; answers whether there is more. */
  async function foldAll(): Promise<boolean> {
    let more = false;
    for (const tenant of await tenantsToFold(db)) {
      if (stop.signal.aborted) return false;
      try {
        more = (await foldPortion(db, tenant)) >= entriesOfPortion || more;
      } catch (error) {
        failed('folding the change history', error);
      }
    }
    return more;
  }

  /** A turn answers whether there is more to do at once. */
  async function repeat(what: string, every: number, turn: () => Promise<boolean>): Promise<void> {
    while (!stop.signal.aborted) {
      const begun = performance.now();
      let more = false;
      try {
        more = await turn();
      } catch (error) {
        failed(what, error);
      }
      if (!more) await rest(Math.max(every, performance.now() - begun));
    }
  }

  function failed(what: string, error: unknown): void {
    app.log.warn({ err: error }, `${what} failed; it is tried again`);
  }

  async function rest(milliseconds: number): Promise<void> {
    await sleep(milliseconds, undefined, { signal: stop.signal, ref: false }).catch(() => {});
  }
}
