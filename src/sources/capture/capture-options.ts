import type { Sealer } from '../../core/sealing.ts';
import type { Tracer } from '../../core/trace.ts';
import type { Database } from '../../postgres/database.ts';
import type { Source } from '../../postgres/source/source.ts';
import type { RecordBatch } from '../../recording/batches/record-batch.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';
import type { SourceLog } from '../source-log.ts';
import type { CaptureFigures } from './slot.ts';

/** What the operator wants where changes are missing, and when capture starts for the first time. */
export interface StartChoice {
  /** Compare the tables with the history when capture starts for the first time. */
  readonly snapshot: boolean;
  /** Compare the tables with the history in any case, and begin a new slot. */
  readonly resync: boolean;
  /** Continue without the missing changes. */
  readonly acceptGap: boolean;
  /** Whether capture may run `alter table … replica identity …`. */
  readonly alter: boolean;
  /** Give each table this identity that can have it. Needs `alter`. */
  readonly identity?: 'full' | undefined;
}

export interface CaptureOptions {
  readonly source: Source;
  readonly db: Database;
  readonly mapping: Mapping;
  /** The name of the slot and of the publication at the source. */
  readonly slot: string;
  readonly choice: StartChoice;
  /** A change that can never be recorded stops capture. */
  readonly strict: boolean;
  readonly recordBatch: RecordBatch;
  /** Recognizes erased documents; without it, none were erased. */
  readonly sealer?: Sealer | undefined;
  readonly log: SourceLog;
  /** Ends capture after the batch that is being recorded. */
  readonly signal: AbortSignal;
  /** For metrics: how far behind capture is. */
  readonly figures?: CaptureFigures;
  /** Makes spans of what is recorded; left out: none. */
  readonly tracer?: Tracer | undefined;
  /** Milliseconds between two heartbeats; default 10,000. */
  readonly heartbeat?: number;
  /** Called once, when capture reads the log, with the names of the tables that it records. */
  readonly onRunning?: (tables: readonly string[]) => void;
}
