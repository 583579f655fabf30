import { readReceipts } from '../../recording/receipt-store.ts';
import { noSuchAction, parseCommand } from '../arguments.ts';
import { type Command, UsageError } from '../command.ts';
import { requireNamedTenant } from '../require-tenant.ts';
import { withInterruptibleDatabase } from '../with-database.ts';

const rowsAtOnce = 500;

export const command: Command = {
  help: `Usage: annals receipt list --tenant T

Prints what was done with a tenant's history besides recording it: one JSON object a line, in
the order of positions. position is that of the receipt itself; what is erasure, retention,
hold, release, first sealing, new key or restore; positions are the first and the last
position of each range of changes concerned; at, by (operator or annals) and reason.

Example:
  annals receipt list --tenant acme`,

  async run([action, ...args], io) {
    if (action !== 'list') throw noSuchAction('receipt', action, ['list']);
    const { values } = parseCommand('receipt list', { args, options: { tenant: { type: 'string' } } });
    const { tenant } = values;
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
  },
};
