import type pg from 'pg';
import { connectSource, withSource } from '../../postgres/source/source.ts';
import { type CatalogueTable, readCatalogue } from '../../postgres/source/source-catalogue.ts';
import { GapError } from './capture-error.ts';
import type { CaptureOptions } from './capture-options.ts';
import {
  type CapturedTables,
  gapOfTables,
  knownTables,
  readCapturedTables,
  storeCapturedTables,
  withdrawn,
  withdrawUnwritable,
} from './captured-tables.ts';
import { compareTables } from './compare-tables.ts';
import { gapBetween, recordedUntil } from './gap.ts';
import { type Lsn, movePosition, type Position, readPosition, resetPosition } from './position.ts';
import { readPublication, readPublished } from './publication.ts';
import { checkSlot, explainedSlotFault, publishTables } from './setup.ts';
import { createSlot, dropSlot, identifySystem, readSlot, type Slot, type SourceSystem } from './slot.ts';

/** The state at the start of a session. */
export interface Prepared {
  readonly position: Position;
  readonly tables: ReadonlyMap<string, CatalogueTable>;
  readonly captured: CapturedTables;
  /** The start of the slot. */
  readonly confirmedFlush: Lsn;
}

interface Source {
  /** Holds the advisory lock of the capture. */
  readonly client: pg.Client;
  readonly version: number;
  readonly system: SourceSystem;
  readonly slot: Slot | undefined;
  readonly captured: CapturedTables;
}

/**
 * Prepares the source and the position. If both exist, checks that no change is missing between them. Otherwise creates
 * the publication and the slot, and compares the tables if requested. Throws a GapError if changes are missing.
 */
export async function prepare(client: pg.Client, version: number, options: CaptureOptions): Promise<Prepared> {
  const { db, slot: name, choice } = options;
  const position = await readPosition(db);
  const slot = await readSlot(client, name);
  if (slot !== undefined) await checkSlot(client, name, slot);
  const captured = await readCapturedTables(db);
  const source = { client, version, system: await readSystem(options), slot, captured };
  const isNew = position === undefined && slot === undefined;
  const isInterrupted = position !== undefined && position.phase !== 'recording';
  if (choice.resync || isNew || isInterrupted) {
    const compares = choice.resync || (isNew && choice.snapshot) || position?.phase === 'copying';
    return await startOver(source, position, compares, options);
  }

  const gap = await gapOf(source, position, options);
  const confirmedFlush = slot?.confirmedFlush ?? undefined;
  if (gap === undefined && position !== undefined && confirmedFlush !== undefined) {
    // Only the stream shows whether the log still has the last recorded transaction.
    if (choice.acceptGap && confirmedFlush < recordedUntil(position))
      return await resumeAtSlot(source, position, options);
    const published = await publish(source, options);
    return { position: { ...position, timeline: source.system.timeline }, ...published, confirmedFlush };
  }
  const what = gap ?? `the slot ${name} is there, and Annals has no position for it`;
  if (!choice.acceptGap) throw new GapError(what);
  options.log.warn({ gap: what }, 'capture continues without the missing changes');
  return await resumeAtSlot(source, position, options);
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
  { client, system, slot, captured }: Source,
  position: Position | undefined,
  { slot: name, mapping }: CaptureOptions,
): Promise<string | undefined> {
  if (position === undefined) return undefined;
  if (position.slot !== name) return `the position is that of the slot ${position.slot}`;
  const gap = gapBetween(position, { system, slot, publication: await readPublication(client, name) });
  if (gap !== undefined) return gap;
  const tables = await readCatalogue(client, [...mapping.tables.keys()]);
  const stillMapped = new Map([...captured].filter(([table]) => mapping.tables.has(table)));
  return gapOfTables(stillMapped, tables, await readPublished(client, name));
}

/** `--accept-gap`: resumes at the slot's position, or with a new slot. */
async function resumeAtSlot(source: Source, last: Position | undefined, options: CaptureOptions): Promise<Prepared> {
  const { client, slot } = source;
  const confirmedFlush = slot?.confirmedFlush ?? undefined;
  if (
    confirmedFlush === undefined ||
    slot?.walStatus === 'lost' ||
    (await readPublication(client, options.slot)) !== 'whole'
  ) {
    return await startOver(source, last, false, options);
  }
  const published = await publish(source, options);
  const position = positionAt(confirmedFlush, source, last, options);
  // Annals recognises repeated changes by identity and time, so the time must be the same again.
  const comesAgain = last !== undefined && confirmedFlush < recordedUntil(last);
  const accepted = comesAgain ? { ...position, lastAt: 0 } : position;
  await resetPosition(options.db, accepted);
  return { position: accepted, ...published, confirmedFlush };
}

/**
 * Creates the publication, then the slot: a slot older than its publication fails forever. With `compares`, then
 * compares the tables with the history in the slot's snapshot.
 */
async function startOver(
  source: Source,
  last: Position | undefined,
  compares: boolean,
  options: CaptureOptions,
): Promise<Prepared> {
  const { client, version, slot } = source;
  // The history is compared with the rows, or starts fresh, so the known tables are discarded once the mapping fits.
  const published = await publish(source, options, { isNew: true });
  const { tables } = published;
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
    return { position, ...published, confirmedFlush: start };
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

/** Publishes the tables, and stores their new state. */
async function publish(
  { client, captured: before }: Source,
  options: CaptureOptions,
  { isNew = false }: { isNew?: boolean } = {},
): Promise<Pick<Prepared, 'tables' | 'captured'>> {
  const captured = await withdrawUnwritable(client, options, before);
  const skipped = new Set(
    [...captured].flatMap(([name, { publication }]) =>
      publication === withdrawn && !isNew && !options.choice.acceptGap && options.mapping.tables.has(name)
        ? [name]
        : [],
    ),
  );
  for (const name of skipped) {
    options.log.warn(
      { table: name },
      `gap: the changes of ${name} are not recorded, because capture took it out of the publication. Start capture once with --resync`,
    );
  }
  const { tables, published } = await publishTables(client, options, captured, skipped);
  const now = knownTables(tables, published, isNew ? new Map() : captured);
  await storeCapturedTables(options.db, now);
  return { tables, captured: now };
}
