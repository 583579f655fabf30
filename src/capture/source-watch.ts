import type pg from 'pg';
import type { CaptureLog } from './capture-options.ts';
import type { CaptureFigures } from './figures.ts';
import type { Lsn } from './lsn.ts';
import type { Position } from './position.ts';
import { readSlot } from './slot.ts';

export interface SourceWatchOptions {
  /** A connection for statements at the source. */
  readonly client: pg.Client;
  readonly slot: string;
  readonly figures: CaptureFigures;
  readonly log: CaptureLog;
  /** Milliseconds between two heartbeats. */
  readonly heartbeat: number;
  /** The end of the source's log as far as it has told. */
  readonly serverEnd: () => Lsn;
  /** Warns of tables whose definition no longer suits capture. */
  readonly checkTables: () => Promise<void>;
}

/** Milliseconds. */
export const defaultHeartbeat = 10_000;
const tableInterval = 60_000;

/** The first size of the slot, in bytes, and the first lag, in milliseconds, at which a warning comes. Others come at each doubling. */
const firstWarningBytes = 1024 ** 3;
const firstWarningLag = 60_000;
/**
 * Moves the slot of an idle database on, and watches how far behind capture is. A heartbeat is a transactional message in the
 * source's log: it comes through the stream as any transaction, is recorded in the position, and is acknowledged. So the source
 * need not keep the log of tables that are not captured.
 */
export class SourceWatch {
  readonly #options: SourceWatchOptions;
  #nextHeartbeat: number;
  #nextTables = performance.now() + tableInterval;
  #warningBytes = firstWarningBytes;
  #warningLag = firstWarningLag;
  #isInDanger = false;

  constructor(options: SourceWatchOptions) {
    this.#options = options;
    this.#nextHeartbeat = performance.now() + options.heartbeat;
  }

  recorded(position: Position): void {
    const { figures, serverEnd } = this.#options;
    figures.lagBytes = Number(serverEnd() > position.endLsn ? serverEnd() - position.endLsn : 0n);
    const committed = Number((position.committedAt ?? 0n) / 1000n);
    figures.lagMilliseconds = committed === 0 ? 0 : Math.max(0, Date.now() - committed);
  }

  /** Does what is due. */
  async look(): Promise<void> {
    const time = performance.now();
    if (time >= this.#nextHeartbeat) {
      this.#nextHeartbeat = time + this.#options.heartbeat;
      await this.#heartbeat();
    }
    if (time >= this.#nextTables) {
      this.#nextTables = time + tableInterval;
      await this.#options.checkTables();
    }
  }

  async #heartbeat(): Promise<void> {
    const { client, slot: name, figures, log } = this.#options;
    await client.query(`select pg_logical_emit_message(true, 'annals.heartbeat', '')`);
    const slot = await readSlot(client, name);
    if (slot === undefined) return;
    figures.slotBytes = slot.keptBytes;
    figures.slotSafeBytes = slot.safeBytes;
    const { keptBytes, safeBytes, walStatus } = slot;
    if (keptBytes >= this.#warningBytes) {
      log.warn({ slot: name, keptBytes, safeBytes, walStatus }, 'the source keeps much of its log for capture');
      this.#warningBytes = keptBytes * 2;
    } else if (keptBytes < firstWarningBytes) {
      this.#warningBytes = firstWarningBytes;
    }
    const isInDanger = safeBytes !== undefined && safeBytes < keptBytes;
    if (isInDanger && !this.#isInDanger) {
      log.warn({ slot: name, keptBytes, safeBytes, walStatus }, 'the source will soon drop the log that capture needs');
    }
    this.#isInDanger = isInDanger;
    if (figures.lagMilliseconds >= this.#warningLag) {
      log.warn(
        { lagMilliseconds: figures.lagMilliseconds, lagBytes: figures.lagBytes },
        'capture is behind the source',
      );
      this.#warningLag *= 2;
    } else if (figures.lagMilliseconds < firstWarningLag) {
      this.#warningLag = firstWarningLag;
    }
  }
}
