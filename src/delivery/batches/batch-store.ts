import type { Generated } from 'kysely';
import type { Connection, DatabaseTransaction } from '../../postgres/database.ts';
import type { ReadingPosition } from '../changes.ts';
import type { StoredObject } from './manifest.ts';

interface DeliveryBatchTable {
  tenant: string;
  subscription: string;
  kind: ReaderKind;
  position: number;
  fingerprint: number;
  until: number;
  first: number;
  last: number;
  changes: number;
  key: string;
  begun_at: Date;
  hashes: Generated<string[]>;
  attempts: Generated<number>;
  due_at: Date;
  receipt: string | null;
  taken_at: Date | null;
}

/** A subscription has a live reader, and may have a replay. */
export type ReaderKind = 'live' | 'replay';

interface DeliveryObjectTable {
  tenant: string;
  subscription: string;
  /** `2026-11-23`: text, since a Date has a time zone. */
  day: string;
  first: number;
  last: number;
  changes: number;
  sha256: string;
}

interface DeliveryManifestTable {
  tenant: string;
  subscription: string;
  day: string;
  attempts: Generated<number>;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    delivery_batch: DeliveryBatchTable;
    delivery_object: DeliveryObjectTable;
    delivery_manifest: DeliveryManifestTable;
  }
}

/** A batch in progress: its bounds and the state of its attempts. Times in milliseconds. */
export interface StoredBatch extends ReadingPosition {
  /** The batch contains every matching change after `position` up to and including this one. */
  readonly until: number;
  readonly first: number;
  readonly last: number;
  readonly changes: number;
  readonly key: string;
  readonly begunAt: number;
  readonly hashes: readonly string[];
  readonly attempts: number;
  readonly dueAt: number;
  readonly receipt: string | null;
  readonly takenAt: number | null;
}

type Bounds = Pick<StoredBatch, 'position' | 'fingerprint' | 'until' | 'first' | 'last' | 'changes' | 'key' | 'hashes'>;

export async function findBatch(
  db: Connection,
  tenant: string,
  subscription: string,
  kind: ReaderKind,
): Promise<StoredBatch | undefined> {
  const row = await db
    .selectFrom('delivery_batch')
    .select(['position', 'fingerprint', 'until', 'first', 'last', 'changes', 'key', 'begun_at'])
    .select(['hashes', 'attempts', 'due_at', 'receipt', 'taken_at'])
    .where(({ and }) => and({ tenant, subscription, kind }))
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { begun_at, due_at, taken_at, ...batch } = row;
  return { ...batch, begunAt: begun_at.getTime(), dueAt: due_at.getTime(), takenAt: taken_at?.getTime() ?? null };
}

export async function insertBatch(
  transaction: DatabaseTransaction,
  tenant: string,
  subscription: string,
  { kind, begunAt, hashes, ...bounds }: Bounds & { readonly kind: ReaderKind; readonly begunAt: number },
): Promise<void> {
  const at = new Date(begunAt);
  await transaction
    .insertInto('delivery_batch')
    .values({
      tenant,
      subscription,
      kind,
      ...bounds,
      hashes: [...hashes],
      begun_at: at,
      due_at: at,
      receipt: null,
      taken_at: null,
    })
    .execute();
}

export async function updateBatch(
  transaction: Connection,
  tenant: string,
  subscription: string,
  kind: ReaderKind,
  {
    dueAt,
    takenAt,
    hashes,
    ...changed
  }: Partial<Pick<StoredBatch, 'changes' | 'hashes' | 'attempts' | 'dueAt' | 'receipt' | 'takenAt'>>,
): Promise<void> {
  await transaction
    .updateTable('delivery_batch')
    .set({
      ...changed,
      ...(hashes !== undefined && { hashes: [...hashes] }),
      ...(dueAt !== undefined && { due_at: new Date(dueAt) }),
      ...(takenAt !== undefined && { taken_at: takenAt === null ? null : new Date(takenAt) }),
    })
    .where(({ and }) => and({ tenant, subscription, kind }))
    .execute();
}

export async function deleteBatch(
  transaction: DatabaseTransaction,
  tenant: string,
  subscription: string,
  kind: ReaderKind,
): Promise<void> {
  await transaction
    .deleteFrom('delivery_batch')
    .where(({ and }) => and({ tenant, subscription, kind }))
    .execute();
}

export async function insertObject(
  transaction: DatabaseTransaction,
  tenant: string,
  subscription: string,
  object: Omit<StoredObject, 'key'> & { readonly day: string },
): Promise<void> {
  await transaction
    .insertInto('delivery_object')
    .values({ tenant, subscription, ...object })
    // A replay on the same day may have the same bounds, and so the same object.
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** The objects of a day, in the order of their positions. */
export async function objectsOf(
  db: Connection,
  tenant: string,
  subscription: string,
  day: string,
): Promise<Omit<StoredObject, 'key'>[]> {
  return await db
    .selectFrom('delivery_object')
    .select(['first', 'last', 'changes', 'sha256'])
    .where(({ and }) => and({ tenant, subscription, day }))
    .orderBy('first')
    .orderBy('last')
    .execute();
}

/** Whether a batch that began before `end` is still in progress. */
export async function hasBatchBefore(
  db: Connection,
  tenant: string,
  subscription: string,
  end: number,
): Promise<boolean> {
  const row = await db
    .selectFrom('delivery_batch')
    .select('kind')
    .where(({ and }) => and({ tenant, subscription }))
    .where('begun_at', '<', new Date(end))
    .executeTakeFirst();
  return row !== undefined;
}

export interface DueManifest {
  /** The first UTC day without a manifest. */
  readonly day: string;
  readonly attempts: number;
}

/** The next manifest due; undefined before the first run. */
export async function findManifest(
  db: Connection,
  tenant: string,
  subscription: string,
): Promise<DueManifest | undefined> {
  return await db
    .selectFrom('delivery_manifest')
    .select(['day', 'attempts'])
    .where(({ and }) => and({ tenant, subscription }))
    .executeTakeFirst();
}

export async function insertManifest(
  transaction: DatabaseTransaction,
  tenant: string,
  subscription: string,
  day: string,
): Promise<void> {
  await transaction.insertInto('delivery_manifest').values({ tenant, subscription, day }).execute();
}

export async function updateManifest(
  transaction: DatabaseTransaction,
  tenant: string,
  subscription: string,
  { day, attempts }: DueManifest,
): Promise<void> {
  await transaction
    .updateTable('delivery_manifest')
    .set({ day, attempts })
    .where(({ and }) => and({ tenant, subscription }))
    .execute();
}

/** Deletes the objects up to a day, which manifests list. */
export async function deleteObjects(
  transaction: DatabaseTransaction,
  tenant: string,
  subscription: string,
  day: string,
): Promise<void> {
  await transaction
    .deleteFrom('delivery_object')
    .where(({ and }) => and({ tenant, subscription }))
    .where('day', '<=', day)
    .execute();
}
