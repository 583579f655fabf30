import { moveTenant } from '../../postgres/cluster/move-tenant.ts';
import { parseCommand, runAction } from '../arguments.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import { withCurrentDatabase, withPool } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals cluster move TENANT WORKER

Moves a tenant to another worker of the cluster that "annals distribute" set up. WORKER is
host:port, as "annals distribute" prints it. Tenants in the same shard move along. The
service may run: reads and writes continue, and writes wait for a moment at the end. The time
depends on the number of rows. Prints one JSON object: tenant, from, to, and others, the
number of other tenants that moved.

Example:
  annals cluster move acme worker2.internal:5432`,

  run: runAction('cluster', { move }),
};

async function move(args: string[], io: CommandIo): Promise<number> {
  const { positionals } = parseCommand('cluster move', { args, options: {}, allowPositionals: true });
  const [tenant, worker, ...others] = positionals;
  if (tenant === undefined || worker === undefined) throw new UsageError('cluster move needs a tenant and a worker');
  if (others[0] !== undefined) throw new UsageError(`cluster move takes no ${others[0]}`);
  const moved = await withCurrentDatabase(io, ({ url }) =>
    withPool(url, { applicationName: 'annals cluster move', maximum: 1 }, (pool) => moveTenant(pool, tenant, worker)),
  );
  io.answer(JSON.stringify(moved));
  return 0;
}
