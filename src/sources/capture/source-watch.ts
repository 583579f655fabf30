import type pg from 'pg';
import type { Lsn } from './lsn.ts';
import type { Position } from './position.ts';
import type { SlotWatch } from './slot-watch.ts';
import type { TableWatch } from './table-watch.ts';

export interface SourceWatchOptions {
  /** A connection for statements at the source. */
  readonly client: pg.Client;
  readonly slotWatch: SlotWatch;
  /** Milliseconds between two heartbeats. */
  readonly heartbeat: number;
  /** The end of the source's log as far as it has told. */
  readonly serverEnd: () => Lsn;
  readonly tables: Pick<TableWatch, 'look'>;
}

/** Milliseconds. */
export const defaultHeartbeat = 10_000;

/**
 * Moves the slot of an idle database on, and has its size looked at. A heartbeat is a transactional message in the
 * source's log: it comes through the stream as any transaction, is recorded in the position, and is acknowledged. So the source
 * need not keep the log of tables that are not captured.
 */
export class SourceWatch {
  readonly #options: SourceWatchOptions;
  #nextHeartbeat: number;

  constructor(options: SourceWatchOptions) {
    this.#options = options;
    this.#nextHeartbeat = performance.now() + options.heartbeat;
  }

  recorded(position: Position): void {
    const { slotWatch, serverEnd } = this.#options;
    slotWatch.recorded(position, serverEnd());
  }

  /** Sends a heartbeat and looks at the slot and the tables, if it is time. Throws a GapError. */
  async look(): Promise<void> {
    const time = performance.now();
    if (time < this.#nextHeartbeat) return;
    const { client, slotWatch, tables, heartbeat } = this.#options;
    this.#nextHeartbeat = time + heartbeat;
    await client.query(`select pg_logical_emit_message(true, 'annals.heartbeat', '')`);
    await slotWatch.look(client);
    await tables.look();
  }
}
