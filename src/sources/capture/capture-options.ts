import type { Sealer } from '../../core/sealing.ts';
import type { Tracer } from '../../core/trace.ts';
import type { Database } from '../../postgres/database.ts';
import type { Source } from '../../postgres/source/source.ts';
import type { RecordBatch } from '../../recording/batches/record-batch.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';
import type { SourceLog } from '../source-log.ts';
import type { CaptureFigures } from './slot.ts';

/** How to start for the first time, and where changes are missing. */
export interface StartChoice {
  /** Compare the tables with the history on the first start. */
  readonly snapshot: boolean;
  /** Compare the tables with the history in any case, and create a new slot. */
  readonly resync: boolean;
  /** Continue without the missing changes. */
  readonly acceptGap: boolean;
  /** Whether capture may run `alter table … replica identity …`. */
  readonly alter: boolean;
  /** The replica identity for every table that can have it. Needs `alter`. */
  readonly identity?: 'full' | undefined;
}

export interface CaptureOptions {
  readonly source: Source;
  readonly db: Database;
  readonly mapping: Mapping;
  /** The name of the slot and of the publication at the source. */
  readonly slot: string;
  readonly choice: StartChoice;
  /** Whether a rejected change stops capture. */
  readonly strict: boolean;
  readonly recordBatch: RecordBatch;
  /** Recognizes erased documents. Default: none were erased. */
  readonly sealer?: Sealer | undefined;
  readonly log: SourceLog;
  /** Stops capture after the current batch. */
  readonly signal: AbortSignal;
  readonly figures?: CaptureFigures;
  readonly tracer?: Tracer | undefined;
  /** Milliseconds between two heartbeats; default 10,000. */
  readonly heartbeat?: number;
  /** Called once, when the stream begins, with the names of the captured tables. */
  readonly onRunning?: (tables: readonly string[]) => void;
}
