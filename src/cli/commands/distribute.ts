import { readConfig } from '../../core/config/config.ts';
import { OperatorError } from '../../core/errors.ts';
import { distribute } from '../../postgres/migrate/distribute.ts';
import { parseCommand } from '../arguments.ts';
import { type Command, UsageError } from '../command.ts';
import { openUrl } from '../open-database.ts';
import { withPool } from '../with-database.ts';

const maxShards = 1_024;

export const command: Command = {
  help: `Usage: annals distribute [--shards COUNT]

Spreads the tenants over the workers of a Citus cluster (12 or later). DATABASE_URL names
the coordinator. All rows of a tenant stay together on one worker.

It migrates the database as "annals migrate" does, and then moves the rows in one
transaction: either all tables are distributed or none. No other program may use the database
during the command. Running services of Annals end; start them again afterwards. The
distribution cannot be undone. Run the command again after the cluster has split a shard; it
is idempotent. It prints the distributed tables, the number of shards, the number of shards
with routines of their own, and the workers. These routines make pages and recording cheaper,
and need the right to create schemas in the database.

--shards is the number of shards, 1 to ${maxShards}; default: 32. Only the first call sets it.
A shard moves as a whole; docs/cluster.md describes how.

Example:
  DATABASE_URL=postgres://annals@coordinator.internal/annals annals distribute`,

  async run(args, io) {
    const { values } = parseCommand('distribute', { args, options: { shards: { type: 'string' } } });
    const shards = values.shards === undefined ? undefined : readShards(values.shards);
    const { databaseUrl } = readConfig(io.environment);
    if (databaseUrl === undefined) {
      throw new OperatorError('DATABASE_URL is missing: the embedded database cannot be distributed');
    }
    const url = await openUrl(databaseUrl, io.tell);
    const outcome = await withPool(url, { applicationName: 'annals distribute', maximum: 2 }, (pool) =>
      distribute(pool, shards === undefined ? {} : { shards }),
    );
    io.answer(JSON.stringify(outcome));
    return 0;
  },
};

function readShards(text: string): number {
  const shards = /^[1-9]\d{0,3}$/.test(text) ? Number(text) : 0;
  if (shards < 1 || shards > maxShards) {
    throw new UsageError(`--shards must be a whole number from 1 to ${maxShards}, and was given ${text}`);
  }
  return shards;
}
