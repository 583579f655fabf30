import { type Generated, sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';
import type { Statements } from '../../postgres/statements.ts';
import { type FindTenants, forEachTenant, type TenantWork } from '../../postgres/tenants/tenants-with.ts';
import type { Tokens } from '../../providers/call-ledger.ts';

interface CompletionQuotaTable {
  tenant: string;
  input_used: Generated<number>;
  output_used: Generated<number>;
  input_reserved: Generated<number>;
  output_reserved: Generated<number>;
}

interface CompletionReservationTable {
  tenant: string;
  reservation: string;
  input: number;
  output: number;
  expires_at: Date;
  charged: Generated<boolean>;
  sent: Generated<boolean>;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    completion_quota: CompletionQuotaTable;
    completion_reservation: CompletionReservationTable;
  }
}

export interface QuotaState {
  used: Tokens;
  reserved: Tokens;
}

/** `free`: no budget applies to a call with the tenant's own key, so it reserves nothing. */
export type Decision =
  | { outcome: 'reserved'; granted: number }
  | { outcome: 'free' }
  | { outcome: 'wait'; budget: string | undefined }
  | { outcome: 'exceeded' }
  | BudgetRefusal;

/**
 * Why a budget refuses a call. `over`: the call needs `bound` and only `rest` is left, both as texts for people.
 * `unpriced`: the model has no price. `unbounded`: its input has no known bound.
 */
export interface BudgetRefusal {
  outcome: 'over' | 'unpriced' | 'unbounded';
  budget: string;
  bound: string | undefined;
  rest: string | undefined;
}

/** The used tokens, replacing a reservation. Undefined: as reserved. */
export interface Settlement {
  reservation: string;
  input: number | undefined;
  output: number | undefined;
  /** Undefined for a call that cost nothing. */
  record: StoredRecord | undefined;
}

/** Columns of `call_record`, as JSON values. */
export type StoredRecord = Readonly<Record<string, unknown>>;

export interface LedgerBatch {
  settlements: readonly Settlement[];
  requests: readonly LedgerRequest[];
}

export interface LedgerRequest {
  reservation: string;
  inputBound: number;
  /** Whether `input` is a reliable bound, which for images it may not be. The quota then reserves a large number. */
  isBounded: boolean;
  outputCap: number;
  /** The start of the call's record. */
  begun: StoredRecord;
}

/** A reservation made as its call leaves, in one step. */
export interface LedgerSendRequest extends LedgerRequest, Pick<Sending, 'lease'> {}

/** A reservation whose call is about to leave. */
export interface Sending {
  reservation: string;
  /** Milliseconds, longer than the call. */
  lease: number;
}

// How long charged reservations are kept, so that late figures can correct them.
const correctable = '1 day';

/**
 * Settles and records, then reserves, in one transaction that is not durable yet. Returns the decisions in order. A
 * reservation not sent within `lease` milliseconds is released.
 */
export async function applyToQuota(
  pool: Statements,
  tenant: string,
  { settlements, requests }: LedgerBatch,
  { limits, minOutput, lease }: { limits: Tokens; minOutput: number; lease: number },
): Promise<Decision[]> {
  if (requests.length === 0 && settlements.length === 1 && (await settleAlone(pool, tenant, settlements))) return [];
  const { rows } = await pool.query<DecisionRow>({
    name: 'completion_quota_apply',
    text: `select outcome, granted, budget, bound, rest
             from completion_quota_apply($1, $2, $3, $4, $5, $6, $7, $8::interval, $9, $10, $11, $12, $13, $14)`,
    values: [
      tenant,
      settlements.map(({ reservation }) => reservation),
      settlements.map(({ input }) => input ?? null),
      settlements.map(({ output }) => output ?? null),
      requests.map(({ reservation }) => reservation),
      requests.map(({ inputBound }) => inputBound),
      requests.map(({ outputCap }) => outputCap),
      `${lease} milliseconds`,
      minOutput,
      limits.input,
      limits.output,
      JSON.stringify(settlements.flatMap(({ record }) => record ?? [])),
      requests.map(({ begun }) => JSON.stringify(begun)),
      requests.map(({ isBounded }) => isBounded),
    ],
  });
  return rows.map(decisionOf);
}

/** A faster path to settle one reservation whose figures are both known. False: not settled. */
async function settleAlone(pool: Statements, tenant: string, [settlement]: readonly Settlement[]): Promise<boolean> {
  if (settlement?.record === undefined || settlement.input === undefined || settlement.output === undefined)
    return false;
  const { reservation, input, output, record } = settlement;
  const known: StoredRecord = { ...record, input_tokens: input, output_tokens: output };
  const { rows } = await pool.query<{ isSettled: boolean }>({
    name: 'completion_quota_settle',
    text: settleReservation,
    values: [tenant, ...recordColumns.map((column) => known[column]), reservation],
  });
  return rows[0]?.isSettled === true;
}

/**
 * Reserves durably for a call that is about to leave. False: the quota does not suffice, or the tenant has budgets or
 * expired reservations; nothing is reserved.
 */
export async function reserveSent(
  pool: Statements,
  tenant: string,
  { reservation, inputBound, outputCap, lease, begun }: LedgerSendRequest,
  limits: Tokens,
): Promise<boolean> {
  const { rows } = await pool.query<{ isReserved: boolean }>({
    name: 'completion_quota_reserve_sent',
    text: 'select completion_quota_reserve_sent($1, $2, $3, $4, $5::interval, $6, $7, $8) as "isReserved"',
    values: [
      tenant,
      reservation,
      inputBound,
      outputCap,
      `${lease} milliseconds`,
      limits.input,
      limits.output,
      JSON.stringify(begun),
    ],
  });
  return rows[0]?.isReserved === true;
}

/** Writes the records of calls without a reservation, idempotently. They are not durable yet. */
export async function writeRecords(pool: Statements, tenant: string, records: readonly StoredRecord[]): Promise<void> {
  const [record, ...others] = records;
  if (record !== undefined && others.length === 0) {
    const values = recordColumns.map((column) => record[column]);
    await pool.query({ name: 'call_record_add', text: addRecord, values: [tenant, ...values] });
    return;
  }
  const text = 'select from call_record_write($1, $2)';
  await pool.query({ name: 'call_record_write', text, values: [tenant, JSON.stringify(records)] });
}

const recordColumns = [
  'id',
  'at',
  'operation',
  'token',
  'provider',
  'model',
  'client',
  'maker',
  'agent',
  'end_user',
  'user_fixed',
  'input_tokens',
  'cached_tokens',
  'cache_write_tokens',
  'hour_cache_write_tokens',
  'output_tokens',
  'reasoning_tokens',
  'first_token_ms',
  'duration_ms',
  'finish_reason',
  'cause',
  'cost',
  'price_from',
] as const;

const named = recordColumns.map((column, index) => `${column} => $${index + 2}`);
const addRecord = `select from call_record_add(of_tenant => $1, ${named.join(', ')})`;
const settled = `settled => $${recordColumns.length + 2}`;
const settleReservation = `select completion_quota_settle(of_tenant => $1, ${named.join(', ')}, ${settled}) as "isSettled"`;

interface DecisionRow {
  outcome: Decision['outcome'];
  granted: number;
  budget: string | null;
  bound: string | null;
  rest: string | null;
}

function decisionOf({ outcome, granted, budget, bound, rest }: DecisionRow): Decision {
  switch (outcome) {
    case 'reserved':
      return { outcome, granted };
    case 'wait':
      return { outcome, budget: budget ?? undefined };
    case 'free':
    case 'exceeded':
      return { outcome };
    default:
      return { outcome, budget: budget ?? '', bound: bound ?? undefined, rest: rest ?? undefined };
  }
}

/** Whether the tenant has any budget now. */
export async function hasBudgets(pool: Statements, tenant: string): Promise<boolean> {
  const { rows } = await pool.query<{ has: boolean }>({
    name: 'budget_exists',
    text: 'select exists (select from budget where tenant = $1) as has',
    values: [tenant],
  });
  return rows[0]?.has === true;
}

/**
 * Returns for each reservation whether its call may leave: it is durable, as the server's synchronous_commit defines
 * it, and its lease has not ended.
 */
export async function sendReserved(pool: Statements, tenant: string, sendings: readonly Sending[]): Promise<boolean[]> {
  const { rows } = await pool.query<{ reservation: string }>({
    name: 'completion_quota_send',
    text: 'select reservation from completion_quota_send($1, $2, $3::interval[]) as reservation',
    values: [
      tenant,
      sendings.map(({ reservation }) => reservation),
      sendings.map(({ lease }) => `${lease} milliseconds`),
    ],
  });
  const sent = new Set(rows.map(({ reservation }) => reservation));
  return sendings.map(({ reservation }) => sent.has(reservation));
}

export async function readQuota(db: Database, tenant: string): Promise<QuotaState> {
  const row = await db.selectFrom('completion_quota').selectAll().where('tenant', '=', tenant).executeTakeFirst();
  return {
    used: { input: row?.input_used ?? 0, output: row?.output_used ?? 0 },
    reserved: { input: row?.input_reserved ?? 0, output: row?.output_reserved ?? 0 },
  };
}

/** Charges the tenant's expired reservations, of dead processes, and releases those whose calls were not sent. */
export async function chargeExpired(db: Database, tenant: string): Promise<void> {
  const expired = await db
    .selectFrom('completion_reservation')
    .select('reservation')
    .where(({ and }) => and({ tenant, charged: false }))
    .where('expires_at', '<=', sql<Date>`statement_timestamp()`)
    .limit(1)
    .executeTakeFirst();
  if (expired === undefined) return;
  await db.transaction().execute(async (transaction) => {
    await transaction
      .selectFrom('completion_quota')
      .select('tenant')
      .where('tenant', '=', tenant)
      .forUpdate()
      .executeTakeFirst();
    await sql`select call_record_write(${tenant}, completion_quota_charge_expired(${tenant}))`.execute(transaction);
  });
}

/** Reservations of dead processes, and charged ones too old for a correction. */
export const reservationWork = {
  expired: { table: 'completion_reservation', condition: 'not charged and expires_at <= statement_timestamp()' },
  old: {
    table: 'completion_reservation',
    condition: `charged and expires_at < statement_timestamp() - interval '${correctable}'`,
  },
} as const satisfies Record<string, TenantWork>;

/** Drops charged reservations too old for a correction. */
export async function dropCharged(db: Database, findTenants: FindTenants): Promise<void> {
  await forEachTenant(await findTenants(reservationWork.old), (tenant) =>
    db
      .deleteFrom('completion_reservation')
      .where(({ and }) => and({ tenant, charged: true }))
      .where('expires_at', '<', sql<Date>`statement_timestamp() - ${correctable}::interval`)
      .execute(),
  );
}
