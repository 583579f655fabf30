import type pg from 'pg';
import { socketOf } from './connection-socket.ts';

/** Connections that a caller has just released. */
export interface JustReleased {
  /** Takes a good connection. At the end of this turn of the event loop it goes back to its pool, unless somebody has taken it. */
  readonly keep: (client: pg.PoolClient) => void;
  /** The connection that came last; undefined if there is none. */
  readonly take: () => pg.PoolClient | undefined;
}

/**
 * Hands a connection on to the next caller that waits. The pool would set and clear timers, and let the caller wait for
 * some ticks more. `release` gives back to the pool what nobody wants at once, or closes it (`destroy`).
 */
export function createJustReleased(release: (client: pg.PoolClient, destroy: boolean) => void): JustReleased {
  let kept: pg.PoolClient[] = [];
  let isScheduled = false;

  function giveBack(): void {
    isScheduled = false;
    const clients = kept;
    kept = [];
    for (const client of clients) release(client, false);
  }

  return {
    keep(client) {
      kept.push(client);
      if (isScheduled) return;
      isScheduled = true;
      setImmediate(giveBack);
    },

    take() {
      const client = kept.pop();
      if (client === undefined || socketOf(client).writable) return client;
      // It has been lost since.
      release(client, true);
      return undefined;
    },
  };
}
