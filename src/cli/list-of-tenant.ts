import type { Database } from '../postgres/database.ts';
import { parseCommand } from './arguments.ts';
import { type CommandIo, UsageError } from './command.ts';
import { requireNamedTenant } from './require-tenant.ts';
import { withInterruptibleDatabase } from './with-database.ts';

/** A command such as `client list --tenant T`, which prints a JSON array. */
export async function listOfTenant(
  command: string,
  args: string[],
  io: CommandIo,
  read: (db: Database, tenant: string) => Promise<readonly object[]>,
): Promise<number> {
  const { tenant } = parseCommand(command, { args, options: { tenant: { type: 'string' } } }).values;
  if (tenant === undefined) throw new UsageError(`${command} needs --tenant`);
  const found = await withInterruptibleDatabase(io, async ({ db }) => {
    await requireNamedTenant(db, tenant);
    return await read(db, tenant);
  });
  io.answer(JSON.stringify(found, null, 2));
  return 0;
}
