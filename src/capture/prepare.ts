import type pg from 'pg';
import { connectSource, withSource } from '../db/source/source.ts';
import type { CatalogueTable } from '../db/source/source-catalogue.ts';
import { GapError } from './capture-error.ts';
import type { CaptureOptions } from './capture-options.ts';
import { compareTables } from './compare-tables.ts';
import { gapBetween, recordedUntil } from './gap.ts';
import type { Lsn } from './lsn.ts';
import { movePosition, type Position, readPosition, resetPosition } from './position.ts';
import { readPublication } from './publication.ts';
import { checkSlot, explainedSlotFault, publishTables } from './setup.ts';
import { createSlot, dropSlot, identifySystem, readSlot, type Slot, type SourceSystem } from './slot.ts';

/** What a session begins with. */
export interface Prepared {
  readonly position: Position;
  readonly tables: ReadonlyMap<string, CatalogueTable>;
  /** Where the slot begins. */
  readonly confirmedFlush: Lsn;
}

interface Source {
  /** Holds the lock of the capture. */
  readonly client: pg.Client;
  readonly version: number;
  readonly system: SourceSystem;
  readonly slot: Slot | undefined;
}

/**
 * Prepares the source and the position. Where both exist, it checks that no change is missing between them. Otherwise
 * it makes the publication and the slot, and compares the tables if the operator asks for it. Throws a GapError where
 * changes are missing.
 */
export async function prepare(client: pg.Client, version: number, options: CaptureOptions): Promise<Prepared> {
  const { db, slot: name, choice } = options;
  const position = await readPosition(db);
  const slot = await readSlot(client, name);
  if (slot !== undefined) await checkSlot(client, name, slot);
  const source = { client, version, system: await readSystem(options), slot };
  const isNew = position === undefined && slot === undefined;
  const isBrokenOff = position !== undefined && position.phase !== 'recording';
  if (choice.resync || isNew || isBrokenOff) {
    const compares = choice.resync || (isNew && choice.snapshot) || position?.phase === 'copying';
    return await beginAnew(source, position, compares, options);
  }

  const gap = await gapOf(source, position, options);
  const confirmedFlush = slot?.confirmedFlush ?? undefined;
  if (gap === undefined && position !== undefined && confirmedFlush !== undefined) {
    // Only the stream can tell whether the log still has the last recorded transaction.
    if (choice.acceptGap && confirmedFlush < recordedUntil(position))
      return await goOnAtSlot(source, position, options);
    const tables = await publishTables(client, publishOptions(options));
    return { position: { ...position, timeline: source.system.timeline }, tables, confirmedFlush };
  }
  const what = gap ?? `the slot ${name} is there, and Annals has no position for it`;
  if (!choice.acceptGap) throw new GapError(what);
  options.log.warn({ gap: what }, 'capture goes on without the changes that are missing');
  return await goOnAtSlot(source, position, options);
}

async function readSystem({ source }: CaptureOptions): Promise<SourceSystem> {
  const replication = await connectSource(source, 'replication').catch((error: unknown) => {
    throw explainedSlotFault(error);
  });
  try {
    return await identifySystem(replication);
  } finally {
    await replication.end().catch(() => {});
  }
}

async function gapOf(
  { client, system, slot }: Source,
  position: Position | undefined,
  { slot: name }: CaptureOptions,
): Promise<string | undefined> {
  if (position === undefined) return undefined;
  if (position.slot !== name) return `the position is that of the slot ${position.slot}`;
  return gapBetween(position, { system, slot, publication: await readPublication(client, name) });
}

/** `--accept-gap`: goes on where the slot is, or with a new slot. */
async function goOnAtSlot(source: Source, last: Position | undefined, options: CaptureOptions): Promise<Prepared> {
  const { client, slot } = source;
  const confirmedFlush = slot?.confirmedFlush ?? undefined;
  if (
    confirmedFlush === undefined ||
    slot?.walStatus === 'lost' ||
    (await readPublication(client, options.slot)) !== 'whole'
  ) {
    return await beginAnew(source, last, false, options);
  }
  const tables = await publishTables(client, publishOptions(options));
  const position = positionAt(confirmedFlush, source, last, options);
  // Annals recognises repeated changes by identity and time, so the time must be the same again.
  const comesAgain = last !== undefined && confirmedFlush < recordedUntil(last);
  const accepted = comesAgain ? { ...position, lastAt: 0 } : position;
  await resetPosition(options.db, accepted);
  return { position: accepted, tables, confirmedFlush };
}

/**
 * Makes publication and slot, in this order: a slot that is older than its publication fails for ever. With `compares`, the tables
 * are then compared with the history, in the snapshot where the slot begins.
 */
async function beginAnew(
  source: Source,
  last: Position | undefined,
  compares: boolean,
  options: CaptureOptions,
): Promise<Prepared> {
  const { client, version, slot } = source;
  const tables = await publishTables(client, publishOptions(options));
  // The random value in `xid` distinguishes this attempt from others.
  const xid = Math.floor(Math.random() * 2 ** 48);
  const begun = { ...positionAt(0n, source, last, options), phase: compares ? 'copying' : 'preparing', xid } as const;
  await resetPosition(options.db, begun);
  if (slot !== undefined) await dropSlot(client, options.slot);
  const replication = await connectSource(options.source, 'replication');
  try {
    const { start, snapshot } = await createSlot(replication, options.slot, version).catch((error: unknown) => {
      throw explainedSlotFault(error);
    });
    options.log.info({ slot: options.slot }, 'the source has a new slot');
    let position = positionAt(start, source, last, options);
    if (compares) {
      const at = await withSource(options.source, (reader) =>
        compareTables(reader, { snapshot, tables, position: begun }, options),
      );
      position = { ...position, lastAt: Math.max(at, position.lastAt) };
    }
    await options.db.transaction().execute((transaction) => movePosition(transaction, begun, position));
    return { position, tables, confirmedFlush: start };
  } finally {
    await replication.end().catch(() => {});
  }
}

function positionAt(lsn: Lsn, { system }: Source, last: Position | undefined, { slot }: CaptureOptions): Position {
  return {
    systemIdentifier: system.identifier,
    timeline: system.timeline,
    slot,
    phase: 'recording',
    commitLsn: lsn,
    endLsn: lsn,
    xid: undefined,
    committedAt: undefined,
    changes: 0,
    complete: true,
    lastAt: last?.lastAt ?? 0,
  };
}

function publishOptions({ mapping, slot, choice, log }: CaptureOptions) {
  return {
    mapping,
    publication: slot,
    alter: choice.alter,
    log: (statement: string) => log.info({ statement }, 'capture ran a statement at the source'),
  };
}
