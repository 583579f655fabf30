import type pg from 'pg';
import { actorLane, groupLane } from './outbox-schema.ts';

/** A row of the outbox. */
export interface OutboxRow {
  readonly number: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly transaction: string;
  /** The table as in the mapping; null for `annals.record`. */
  readonly source: string | null;
  /** JSON texts of the row. */
  readonly before: string | null;
  readonly after: string | null;
  /**
   * JSON text: the document of `annals.record`; the part of a row whose id changed; columns masked by the trigger; the
   * key of a row that could not be written.
   */
  readonly document: string | null;
  readonly actor: string | null;
  readonly context: string | null;
  /** The setting annals.who, as it is. */
  readonly who: string | null;
  /** JSON text: who made the transaction, by a new row of another table. Members `actor`, `actorId`, `name` and `id`. */
  readonly transactionActor: string | null;
  /** Whether the transaction has several changes. The SQL of an older version does not say. */
  readonly isOfGroup: boolean;
  /** Why the row could not be written. */
  readonly fault: string | null;
}

/** Rows relayed in one transaction. */
const maxRows = 2_000;
const maxBytes = 8 * 1024 * 1024;

/**
 * Whether there may be changes. Looks up no names, so it needs no transaction of beginSource. The order makes it use
 * the index instead of pages that a backlog left empty.
 */
export async function hasRows(client: pg.Client): Promise<boolean> {
  const { rowCount } = await client.query('select from annals.outbox where lane >= 0 order by lane, number limit 1');
  return rowCount === 1;
}

/**
 * Locks a free lane with changes until the transaction ends, which keeps the order of each document. Undefined if there
 * is none.
 */
export async function takeLane(client: pg.Client): Promise<number | undefined> {
  const { rows } = await client.query<{ lane: string }>(
    `select l.lane from annals.lane l
      where exists (select from annals.outbox o where o.lane = l.lane)
      order by random() limit 1 for no key update of l skip locked`,
  );
  return rows[0] === undefined ? undefined : Number(rows[0].lane);
}

/**
 * The first rows of a lane. A missing number belongs to an uncommitted transaction, which changed other documents than
 * the later rows.
 */
export async function readLane(client: pg.Client, lane: number): Promise<OutboxRow[]> {
  const { rows } = await client.query<Omit<OutboxRow, 'at' | 'isOfGroup'> & { at: string; isOfGroup: string }>(
    `select number, floor(extract(epoch from at) * 1000)::bigint as at, transaction, source, before, after,
            nullif(document - 'who', '{}') as document, actor, context, document ->> 'who' as who, fault,
            coalesce((select coalesce(a.document, jsonb_build_object('actor', a.actor)) from annals.outbox a
                       where a.lane = ${actorLane} and a.transaction = page.transaction order by a.number limit 1),
                     -- as the SQL of an older version wrote it
                     jsonb_build_object('actor', document ->> 'actor')) as "transactionActor",
            exists (select from annals.outbox g where g.lane = ${groupLane} and g.number = page.transaction::text::bigint) as "isOfGroup"
       from (select o.*, sum(pg_column_size(o.*)) over (order by number) - pg_column_size(o.*) as bytes
               from (select * from annals.outbox where lane = $1 order by number limit ${maxRows}) as o) as page
      where bytes < ${maxBytes} order by number`,
    [lane],
  );
  return rows.map((row) => ({ ...row, at: Number(row.at), isOfGroup: row.isOfGroup === 't' }));
}

export async function deleteRows(client: pg.Client, lane: number, rows: readonly OutboxRow[]): Promise<void> {
  const numbers = rows.map(({ number }) => number);
  await client.query('delete from annals.outbox where lane = $1 and number = any ($2::bigint[])', [lane, numbers]);
}

/**
 * Deletes the rows that say something of relayed transactions, in a transaction of beginSource. All rows of a transaction
 * become visible at once. The lock keeps two relays from deleting the same rows in another order.
 */
export async function deleteNotes(client: pg.Client): Promise<void> {
  await client.query(`select pg_advisory_xact_lock(${lockSpace}, 'annals.outbox'::regclass::oid::int)`);
  await client.query(
    `delete from annals.outbox a
      where lane < 0 and not exists (select from annals.outbox o where o.lane >= 0 and o.transaction = a.transaction)`,
  );
}

/** The first key of the advisory lock: `anls` in ASCII. */
const lockSpace = 0x616e6c73;

/** The identifier of the source's server, whose transaction ids mean nothing on another one; empty if it is not known. */
export async function serverId(client: pg.Client): Promise<string> {
  const { rows: rights } = await client.query<{ allowed: string | null }>(
    `select has_function_privilege(to_regprocedure('pg_catalog.pg_control_system()'), 'execute') as allowed`,
  );
  if (rights[0]?.allowed !== 't') return '';
  const { rows } = await client.query<{ id: string }>('select system_identifier as id from pg_control_system()');
  return rows[0]?.id ?? '';
}

export async function outboxId(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ id: string }>('select id from annals.installation');
  const [row] = rows;
  if (row === undefined) throw new Error('the outbox has no id');
  return row.id;
}

/** The rows to relay, and the age of the oldest in seconds. */
export async function readOutboxFigures(client: pg.Client): Promise<{ changes: number; oldest: number }> {
  const { rows } = await client.query<{ changes: string; oldest: string }>(
    `select count(*) as changes, coalesce(extract(epoch from clock_timestamp() - min(at)), 0) as oldest
       from annals.outbox where lane >= 0`,
  );
  return { changes: Number(rows[0]?.changes ?? 0), oldest: Math.max(0, Number(rows[0]?.oldest ?? 0)) };
}
