import { sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';
import { rowsOfAll } from '../../postgres/tenants/tenants.ts';
import { type BacklogOptions, type TenantWork, tenantsWith, workInTurn } from '../../postgres/tenants/tenants-with.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { lastPosition } from '../../recording/positions.ts';
import { readTreeSize } from './leaf-store.ts';
import { betweenCheckpoints, readLog, tenantsWithLog, tryLockProof } from './log-store.ts';
import { sealLeaves } from './seal-leaves.ts';
import { openLog, type SetBackLog, signLog } from './sign-log.ts';
import type { LogSigner } from './signer.ts';

/** What seals histories. */
export interface Sealing {
  readonly signer: LogSigner;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Called where a database turns out to have been set back behind what the key signed. */
  readonly onSetBack?: ((tenant: string, log: SetBackLog) => void) | undefined;
}

/**
 * Tenants of which something may not be sealed or signed: a fold is behind the positions of what it folded. Not before
 * the time that the last look noted, and where nothing came a day after it.
 */
export const unsealed: TenantWork = {
  table: 'change_folded',
  condition: `(folds <> sealed or seal_after <= statement_timestamp() - interval '1 day')
    and coalesce(seal_after, '-infinity') <= statement_timestamp()`,
};

/** Leaves of a portion from which on the tenant is looked at again soon: a history that grows fast is sealed evenly. */
const manyLeaves = 512;
const pauses = { usual: betweenCheckpoints, soon: '5 s' };
/**
 * Milliseconds until it looks again for tenants, so that one with a long backlog does not delay the checkpoints of
 * others.
 */
const maxTime = 5_000;

export interface SealTenantsOptions extends Omit<BacklogOptions, 'maxTime'> {
  /** Whether all tenants with a log are looked at, too: a database that was restored may be behind what was signed. */
  readonly all: boolean;
}

/** Seals the histories of all tenants, a portion of each in turn. */
export async function sealTenants(
  db: Database,
  sealing: Sealing,
  { all, findTenants, ...options }: SealTenantsOptions,
): Promise<void> {
  let more = all ? await tenantsWith(db, tenantsWithLog) : [];
  const found = async (work: TenantWork) => [...new Set([...more, ...(await findTenants(work))])];
  do {
    more = await workInTurn(unsealed, { ...options, findTenants: found, maxTime }, (tenant) =>
      sealPortion(db, tenant, sealing),
    );
  } while (more.length > 0);
}

/**
 * Seals a portion of a tenant's history, and signs the tree where a checkpoint is due. Returns whether there is more to
 * seal. It never waits for another process that seals the tenant or erases of it.
 */
export async function sealPortion(db: Database, tenant: string, { signer, now, onSetBack }: Sealing): Promise<boolean> {
  // What was folded before has its position before the places are read.
  const folds = await readFolds(db, tenant);
  const { position } = await lastPosition(db, tenant);
  if (position === 0) {
    await storeLook(db, tenant, folds, pauses.usual);
    return false;
  }
  await openLog(db, tenant, { signer, now, sealing: true });
  const leaves = await inTransaction(db, async (transaction) =>
    (await tryLockProof(transaction, tenant)) ? await sealLeaves(transaction, tenant) : undefined,
  );
  if (leaves === undefined) return false;
  const signed = await inTransaction(db, async (transaction) => {
    if (!(await tryLockProof(transaction, tenant))) return 'waits';
    const log = await readLog(transaction, tenant);
    return log?.isDue === true ? await signLog(transaction, tenant, log, { signer, now }) : 'waits';
  });
  if (typeof signed === 'object') onSetBack?.(tenant, signed);
  if (typeof signed === 'object' || leaves.more) return true;
  const size = await readTreeSize(db, tenant);
  const log = await readLog(db, tenant);
  const pause = leaves.sealed >= manyLeaves ? pauses.soon : pauses.usual;
  if (size >= position && log?.size === size) await storeLook(db, tenant, folds, pause);
  else await storeLook(db, tenant, undefined, pause, log?.signedAt ?? undefined);
  return false;
}

async function readFolds(db: Database, tenant: string): Promise<number | undefined> {
  const { rows } = await sql<{ folds: number }>`select folds from change_folded where tenant = ${tenant}`.execute(db);
  return rows[0]?.folds;
}

/**
 * Notes when to look again, and which fold has been followed; `folds` undefined: not all of one. `signedAt`: something
 * has no checkpoint yet, which may be due before the pause ends.
 */
async function storeLook(
  db: Database,
  tenant: string,
  folds: number | undefined,
  pause: string,
  signedAt?: Date,
): Promise<void> {
  const due =
    signedAt === undefined
      ? sql``
      : sql`, greatest(statement_timestamp() + ${pauses.soon}::interval, ${signedAt}::timestamptz + ${betweenCheckpoints}::interval)`;
  await sql`update change_folded
    set sealed = coalesce(${folds ?? null}::bigint, sealed), seal_after = least(statement_timestamp() + ${pause}::interval${due})
    where tenant = ${tenant}`.execute(db);
}

/** How far the newest checkpoints are behind, of the tenant that is farthest. */
interface SealingLag {
  readonly positions: number;
  /** Since the oldest change without a checkpoint was recorded. */
  readonly seconds: number;
}

// By indexes: of each tenant the newest position, and the first one that no checkpoint has.
const lagOfTenants = `
  select exists (select from %2$s where ended is null) as sealed,
         coalesce(max(greatest(n.last - coalesce(l.size, 0), 0)), 0) as positions,
         coalesce(max(case when n.last > coalesce(l.size, 0) then
           greatest(extract(epoch from statement_timestamp()) - p.recorded[coalesce(l.size, 0) + 2 - p.first] / 1000.0, 0)
           end), 0) as seconds
    from %1$s t
    left join %2$s l on l.tenant = t.tenant and l.ended is null
    cross join lateral (
      select c.first + cardinality(c.fingerprints) - 1 as last from %3$s c where c.tenant = t.tenant order by c.first desc limit 1
    ) n
    left join lateral (
      select c.first, c.recorded from %3$s c
        where c.tenant = t.tenant and c.first <= coalesce(l.size, 0) + 1 order by c.first desc limit 1
    ) p on true`;

/** Undefined where no history is sealed. */
export async function readSealingLag(db: Database): Promise<SealingLag | undefined> {
  const tables = ['tenant', 'proof_log', 'change_position'];
  const found = await rowsOfAll<SealingLag & { sealed: boolean }>(db, lagOfTenants, tables);
  if (!found.some(({ sealed }) => sealed)) return undefined;
  return {
    positions: Math.max(...found.map(({ positions }) => positions)),
    seconds: Math.max(...found.map(({ seconds }) => seconds)),
  };
}
