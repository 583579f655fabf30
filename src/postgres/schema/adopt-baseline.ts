import type pg from 'pg';
import { OperatorError } from '../../core/errors.ts';
import type { Schema } from './read-schema.ts';

/** The migrations that the baseline replaced. A database with the last one has all, and the baseline's tables. */
const firstFormer = '0001-tenants.sql';
const lastFormer = '0146-compressed-times.sql';
/** The last commit with these migrations, which finishes what they leave to the service. */
const bridgeCommit = 'b0629b113e35';

/** Their tables that the baseline lacks: backlogs of entries of earlier versions. */
const formerTables = `
  create table change_path_backlog (
    tenant text collate "C" primary key references tenant (tenant),
    at bigint not null,
    sequence bigint not null default 9007199254740991
  );
  create table change_position_backlog (
    tenant text collate "C" primary key references tenant (tenant),
    until bigint,
    filled bigint not null default 0,
    at bigint,
    sequence bigint not null default 0,
    fingerprint integer
  )`;

/** What they leave to the service, with a query of the unfinished rows. */
const unfinished: readonly (readonly [what: string, query: string])[] = [
  ['changes without numbers of paths', 'select tenant from change_path_backlog'],
  ['changes without positions', 'select tenant from change_position_backlog where filled is distinct from until'],
  ['changes without a sequence', "select tenant from change_delta where sequences = '{}'"],
  [
    'provider tokens that are not sealed',
    `select tenant from configuration where value is not null and key in ('providerApiToken', 'openAiApiToken', ` +
      `'anthropicApiToken', 'googleApiToken', 'selfHostedProvider')`,
  ],
  ['chats under way without a log', "select tenant from agent_turn where state = 'running' and log_id is null"],
  [
    'chats without a place in their session',
    "select tenant from job where type = 'AGENT_CHAT' and status = 'in_progress' and place is null",
  ],
  [
    'indexes that are not replaced',
    `select relname from pg_class where relnamespace = current_schema()::regnamespace and ` +
      `relname in ('change_entry_id', 'change_entry_kind', 'custom_instance_values')`,
  ],
];

/** Whether these migrations, by their file names, are from before the baseline. */
export function areFormer(migrations: readonly string[]): boolean {
  return migrations.includes(firstFormer);
}

/** Throws an OperatorError unless these are all migrations from before the baseline. */
export function checkFormer(what: 'database' | 'backup', migrations: readonly string[]): void {
  if (migrations.at(-1) === lastFormer) return;
  throw new OperatorError(
    `The ${what} is at ${migrations.at(-1)}, and this version of Annals opens those that are at ${lastFormer} or later. ${bridge(what)}`,
  );
}

/**
 * Replaces the migrations from before the baseline by the baseline. The caller is in a transaction, holds the lock of
 * the ledger and has called `checkFormer`. Throws an OperatorError if they left something unfinished.
 */
export async function adoptBaseline(client: pg.ClientBase, { migrations: [baseline] }: Schema): Promise<void> {
  await dropFormerTables(client, 'database');
  await client.query('delete from migration');
  await client.query('insert into migration (number, name, checksum) values ($1, $2, $3)', [
    baseline?.number,
    baseline?.name,
    baseline?.checksum,
  ]);
}

/** Adds the former tables to those of the baseline, for the rows of a backup. */
export async function createFormerTables(client: pg.ClientBase): Promise<void> {
  await client.query(formerTables);
}

/** Drops the former tables. Throws an OperatorError if something is unfinished. */
export async function dropFormerTables(client: pg.ClientBase, what: 'database' | 'backup'): Promise<void> {
  await checkFinished(client, what);
  await client.query('drop table change_path_backlog');
  await client.query('drop table change_position_backlog');
}

/** Throws an OperatorError if the migrations from before the baseline left something unfinished. */
export async function checkFinished(client: pg.ClientBase | pg.Pool, what: 'database' | 'backup'): Promise<void> {
  for (const [name, query] of unfinished) {
    const { rows } = await client.query<{ rows: number }>(`select count(*) as rows from (${query}) as unfinished`);
    if (rows[0]?.rows === 0) continue;
    throw new OperatorError(
      `The ${what} has ${name} that an earlier version of Annals left to be finished. It is finished when this returns no row: ` +
        `${query}. ${bridge(what)}`,
    );
  }
}

/** What to do with a database or a backup that only an earlier version reads. */
export function bridge(what: 'database' | 'backup'): string {
  const first = what === 'backup' ? 'restore the backup with it, ' : '';
  return (
    `Build Annals at commit ${bridgeCommit}, ${first}start it and let it finish, and then start this version: see ` +
    'docs/upgrading.md. Nothing was changed'
  );
}
