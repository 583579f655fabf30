import { readReceipts } from '../../recording/receipt-store.ts';
import { parseCommand, runAction } from '../arguments.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import { requireNamedTenant } from '../require-tenant.ts';
import { withInterruptibleDatabase } from '../with-database.ts';

const rowsAtOnce = 500;

export const command: Command = {
  help: `Usage: annals receipt list --tenant T

Prints the receipts of a tenant's history, for everything done to it except recording: one
JSON object a line, in the order of positions. position is that of the receipt; what is
erasure, retention, hold, release, first sealing, new key or restore; positions are the first
and last position of each affected range; at, by (operator or annals) and reason.

Example:
  annals receipt list --tenant acme`,

  run: runAction('receipt', { list }),
};

async function list(args: string[], io: CommandIo): Promise<number> {
  const { tenant } = parseCommand('receipt list', { args, options: { tenant: { type: 'string' } } }).values;
  if (tenant === undefined) throw new UsageError('receipt list needs --tenant');
  return await withInterruptibleDatabase(io, async ({ db }) => {
    await requireNamedTenant(db, tenant);
    for (let after = 0; ; ) {
      const receipts = await readReceipts(db, tenant, { after, limit: rowsAtOnce });
      for (const { position, body } of receipts) {
        io.answer(JSON.stringify({ position, ...(JSON.parse(body) as object) }));
        after = position;
      }
      if (receipts.length < rowsAtOnce) return 0;
    }
  });
}
