import type pg from 'pg';
import { type Source, withSource } from '../../postgres/source/source.ts';
import type { SourceLog } from '../source-log.ts';
import type { CaptureFigures } from './figures.ts';
import type { Lsn } from './lsn.ts';
import type { Position } from './position.ts';
import { readSlot } from './slot.ts';

export interface SlotWatchOptions {
  readonly slot: string;
  readonly figures: CaptureFigures;
  readonly log: SourceLog;
  /** Milliseconds between two looks while nothing can be recorded. */
  readonly interval: number;
}

/** The first size of the slot, in bytes, and the first lag, in milliseconds, at which a warning comes. Others come at each doubling. */
const firstWarningBytes = 1024 ** 3;
const firstWarningLag = 60_000;

/**
 * Watches the lag of capture, and the log that the source retains for it. Runs even while Annals' own database is
 * unavailable, since that is when the source's disk fills up.
 */
export class SlotWatch {
  readonly #options: SlotWatchOptions;
  #warningBytes = firstWarningBytes;
  #warningLag = firstWarningLag;
  #isInDanger = false;
  #isBlind = false;
  #nextLook = 0;
  /** When the transaction was committed that was recorded last, in milliseconds since 1970. */
  #committedAt: number | undefined;

  constructor(options: SlotWatchOptions) {
    this.#options = options;
  }

  recorded(position: Position, serverEnd: Lsn): void {
    const { figures } = this.#options;
    figures.lagBytes = Number(serverEnd > position.endLsn ? serverEnd - position.endLsn : 0n);
    if (position.committedAt !== undefined) this.#committedAt = Number(position.committedAt / 1000n);
    this.#tellTime();
  }

  /** Checks the slot on its own connection, if due. Logs once if it cannot, since full disks then go unnoticed. */
  async lookWhileAway(source: Source): Promise<void> {
    if (performance.now() < this.#nextLook) return;
    this.#nextLook = performance.now() + this.#options.interval;
    // Heartbeats are committed all the time, so there is something to record.
    this.#tellTime();
    try {
      await withSource(source, (client) => this.look(client));
      this.#isBlind = false;
    } catch (error) {
      const { slot, log } = this.#options;
      if (!this.#isBlind) log.warn({ slot, err: error }, 'capture cannot see how much of its log the source keeps');
      this.#isBlind = true;
    }
  }

  async look(client: pg.Client): Promise<void> {
    const { slot: name, figures, log } = this.#options;
    const slot = await readSlot(client, name);
    if (slot === undefined) return;
    const { keptBytes, safeBytes, walStatus } = slot;
    figures.slotBytes = keptBytes;
    figures.slotSafeBytes = safeBytes;
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
    this.#warnOfLag();
  }

  #warnOfLag(): void {
    const { figures, log } = this.#options;
    const { lagMilliseconds, lagBytes } = figures;
    if (lagMilliseconds >= this.#warningLag) {
      log.warn({ lagMilliseconds, lagBytes }, 'capture is behind the source');
      this.#warningLag = lagMilliseconds * 2;
    } else if (lagMilliseconds < firstWarningLag) {
      this.#warningLag = firstWarningLag;
    }
  }

  #tellTime(): void {
    const committed = this.#committedAt;
    this.#options.figures.lagMilliseconds = committed === undefined ? 0 : Math.max(0, Date.now() - committed);
  }
}
