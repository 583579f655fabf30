import pg from 'pg';
import { socketOf } from './connection-socket.ts';

/** Connections that a pool opens at the same time. */
export const maxOpening = 2;

/**
 * The clients of a pool, which open their connections two at a time, in the order of their calls. A server that has just started opens
 * a few connections quickly and many slowly. A pool that asked for all of its connections at once would give up all of them at its
 * limit and begin anew, so the server's work would be lost each time.
 */
export function clientsInTurn(): typeof pg.Client {
  const waiting = new Set<() => void>();
  let opening = 0;

  function turn(client: pg.Client): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const stream = socketOf(client);
    // The pool destroys the socket of a client that it gives up.
    const onClose = () => {
      waiting.delete(begin);
      reject(new Error('the connection was given up before its turn to open'));
    };
    const begin = () => {
      stream.off('close', onClose);
      waiting.delete(begin);
      opening += 1;
      resolve();
    };
    stream.once('close', onClose);
    waiting.add(begin);
    if (opening < maxOpening) begin();
    return promise;
  }

  async function openInTurn(client: pg.Client, open: () => Promise<unknown>): Promise<void> {
    await turn(client);
    try {
      await open();
    } finally {
      opening -= 1;
      const [next] = waiting;
      next?.();
    }
  }

  return class extends pg.Client {
    override connect(): Promise<this>;
    override connect(callback: (error: Error | null, client?: this) => void): void;
    override connect(callback?: (error: Error | null, client?: this) => void): Promise<this> | undefined {
      const opened = openInTurn(this, () => super.connect()).then(() => this);
      if (callback === undefined) return opened;
      void opened.then((client) => callback(null, client), callback);
      return undefined;
    }
  };
}
