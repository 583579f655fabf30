import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { codeOf } from '../../core/errors.ts';
import { TimeSlice } from '../../core/fairness/time-slice.ts';
import { connectSource } from '../../postgres/source/source.ts';
import { PostgresTypes } from '../../recording/mapping/postgres-types.ts';
import { Batcher } from './batcher.ts';
import { CaptureError, GapError } from './capture-error.ts';
import type { CaptureOptions } from './capture-options.ts';
import { withdrawn } from './captured-tables.ts';
import { ResumeCheck } from './gap.ts';
import { HistoryComparison } from './history-comparison.ts';
import { decodePgoutput } from './pgoutput.ts';
import { formatLsn, type Lsn } from './position.ts';
import { type Prepared, prepare } from './prepare.ts';
import { recordCaptured } from './record-captured.ts';
import { ReplicationStream } from './replication-stream.ts';
import { checkServer } from './setup.ts';
import { readSlot, type SlotWatch } from './slot.ts';
import { SourceTables } from './source-tables.ts';
import { TableWatch } from './table-watch.ts';
import { TransactionReader } from './transaction-reader.ts';

interface SessionOptions extends CaptureOptions {
  /** Shared by all sessions of a capture. */
  readonly slotWatch: SlotWatch;
}

interface SessionEvents {
  /** Called when the stream of these tables has started. */
  onRunning(tables: readonly string[]): void;
  onRecorded(): void;
}

/**
 * Connects to the source, prepares it and records until the signal. Throws if a database becomes unavailable, and a
 * GapError if changes are missing.
 */
export async function runSession(options: SessionOptions, events: SessionEvents): Promise<void> {
  const client = await connectSource(options.source, 'statements');
  try {
    const version = await checkServer(client);
    if (!(await takeLock(client, options))) return;
    const prepared = await prepare(client, version, options);
    if (options.signal.aborted) return;
    const replication = await connectSource(options.source, 'replication');
    try {
      await stream(client, replication, prepared, options, events);
    } finally {
      await replication.end().catch(() => {});
    }
  } finally {
    await client.end().catch(() => {});
  }
}

/**
 * Only one capture may use a slot. The source's advisory lock also covers its creation, and ends with the connection.
 */
async function takeLock(client: pg.Client, { slot, log, signal }: CaptureOptions): Promise<boolean> {
  for (let attempt = 0; !signal.aborted; attempt++) {
    const { rows } = await client.query<{ taken: string }>('select pg_try_advisory_lock($1, hashtext($2)) as taken', [
      lockSpace,
      slot,
    ]);
    if (rows[0]?.taken === 't') return true;
    if (attempt === 0) log.info({ slot }, 'another capture reads the slot; this one waits for its end');
    await sleep(lockPause, undefined, { signal }).catch(() => {});
  }
  return false;
}

/** The first key of the advisory lock: `anls` in ASCII. */
const lockSpace = 0x616e6c73;
/** Milliseconds. */
const lockPause = 500;

/** Milliseconds for reading messages before the event loop gets other work. */
const sliceLength = 3;

/** Milliseconds without a message before timers are checked. */
const idleTime = 250;

async function stream(
  client: pg.Client,
  replication: pg.Client,
  { position, tables, captured, confirmedFlush }: Prepared,
  options: SessionOptions,
  events: SessionEvents,
): Promise<void> {
  const { mapping, slot, log, slotWatch, signal } = options;
  const incoming = new ReplicationStream(slot, slot, confirmedFlush);
  const tableWatch = new TableWatch(client, options, tables, captured);
  const reader = new TransactionReader({
    mapping,
    tables: new SourceTables(tableWatch, mapping, new PostgresTypes(client)),
    systemIdentifier: position.systemIdentifier,
    resume: new ResumeCheck(position, confirmedFlush),
    lastAt: position.lastAt,
    warn: (message) => log.warn({}, message),
  });
  const comparison = new HistoryComparison(mapping);
  const batcher = new Batcher({
    position,
    signal,
    tracer: options.tracer,
    record: (batch) =>
      recordCaptured(batch, { ...options, comparison }).catch((error: unknown) => {
        // Ends a wait for the next message.
        incoming.fail(error instanceof Error ? error : new Error(String(error)));
        throw error;
      }),
    onRecorded: (recorded) => {
      events.onRecorded();
      if (recorded.complete) incoming.acknowledge(recorded.endLsn);
      slotWatch.recorded(recorded, incoming.serverEnd);
      // To record what was collected since.
      incoming.wake();
    },
  });
  const look = watchSource(client, slotWatch, tableWatch, options.heartbeat);
  const pid = await pidOf(replication);
  replication.query(incoming);
  try {
    const started = await untilStarted({ client, pid, slot, start: confirmedFlush, incoming, signal });
    if (!started) return;
    log.info({ slot, from: formatLsn(confirmedFlush) }, 'capture reads the log of the source');
    events.onRunning([...captured].flatMap(([name, { publication }]) => (publication === withdrawn ? [] : [name])));
    const slice = new TimeSlice(sliceLength);
    while (!signal.aborted) {
      // Recording needs the event loop too.
      if (slice.isDue) await slice.rest();
      batcher.flushIfDue();
      const message = incoming.take();
      if (message === undefined) {
        batcher.flush();
        await look();
        await incoming.untilMessage(idleTime);
        continue;
      }
      const transaction = await reader.take(decodePgoutput(message));
      if (transaction === undefined) continue;
      try {
        await batcher.add(transaction);
      } finally {
        transaction.close();
      }
      await look();
    }
    await batcher.finish();
  } catch (error) {
    // What was read before is complete, and need not wait for the operator.
    if (error instanceof CaptureError) await batcher.finish().catch(() => {});
    throw asGap(error) ?? error;
  } finally {
    incoming.fail(new Error('capture ends'));
    reader.close();
    await batcher.settled();
  }
}

interface Start {
  readonly client: pg.Client;
  /** The backend of the stream. */
  readonly pid: number;
  readonly slot: string;
  readonly start: Lsn;
  readonly incoming: ReplicationStream;
  readonly signal: AbortSignal;
}

/**
 * Waits until the server streams to this connection, which locks the slot, and checks its start. Returns false if
 * aborted.
 */
async function untilStarted({ client, pid, slot, start, incoming, signal }: Start): Promise<boolean> {
  for (;;) {
    const slotState = await readSlot(client, slot);
    if (slotState?.activePid === pid) {
      if (slotState.confirmedFlush === start) return true;
      throw new GapError(`the slot ${slot} was moved from ${formatLsn(start)} while capture began`);
    }
    if (signal.aborted) return false;
    await sleep(startPause);
    await incoming.untilMessage(0);
  }
}

/** Milliseconds. */
const startPause = 10;

async function pidOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ pid: string }>('select pg_backend_pid() as pid');
  return Number(rows[0]?.pid);
}

/** A stream error that means a gap. */
function asGap(error: unknown): GapError | undefined {
  const code = codeOf(error);
  // undefined_object: the log needs a publication that did not exist yet, or no longer does.
  if (code === '42704') return new GapError('the slot is older than its publication');
  // object_not_in_prerequisite_state, undefined_file
  if (code === '55000' || code === '58P01')
    return new GapError('the source has dropped a part of its log that is not recorded');
  return undefined;
}

/** Milliseconds between heartbeats. */
export const defaultHeartbeat = 10_000;

/** Milliseconds between checks of table definitions. */
const tablesInterval = 1_000;

/**
 * Returns a function to call often: when due, it sends a heartbeat and checks the slot and the tables, each second also
 * whether the published tables changed, since a migration may have made one unwritable. Throws a GapError. Heartbeats
 * are transactional messages that come back through the stream and are acknowledged, so an idle source need not retain
 * WAL.
 */
function watchSource(
  client: pg.Client,
  slotWatch: SlotWatch,
  tables: TableWatch,
  interval = defaultHeartbeat,
): () => Promise<void> {
  let next = performance.now() + interval;
  let nextTables = performance.now();
  return async () => {
    const time = performance.now();
    if (time < next) {
      if (time < nextTables) return;
      nextTables = time + tablesInterval;
      await tables.lookIfChanged();
      return;
    }
    next = time + interval;
    await client.query(`select pg_logical_emit_message(true, 'annals.heartbeat', '')`);
    await slotWatch.look(client);
    await tables.look();
  };
}
