import { setRetention } from '../../history/retention/retention.ts';
import { parseCommand } from '../arguments.ts';
import { type Command, UsageError } from '../command.ts';
import { requireNamedTenant } from '../require-tenant.ts';
import { withDatabase } from '../with-database.ts';

const maxDays = 100_000;

export const command: Command = {
  help: `Usage: annals retention --tenant T --keep-days N

Sets the retention of a tenant's change history: today and the N whole UTC days before it.
Older entries disappear from all responses at once; the service deletes their rows later,
in small batches. This cannot be undone: a larger N does not bring deleted entries back.
Prints one JSON object: tenant, keepDays and horizon, the start of the retained history.

Example:
  annals retention --tenant acme --keep-days 365`,

  async run(args, io) {
    const options = { tenant: { type: 'string' }, 'keep-days': { type: 'string' } } as const;
    const { tenant, 'keep-days': days } = parseCommand('retention', { args, options }).values;
    if (tenant === undefined) throw new UsageError('retention needs --tenant');
    const keepDays = days !== undefined && /^[0-9]+$/.test(days) ? Number(days) : Number.NaN;
    if (!(keepDays >= 1 && keepDays <= maxDays)) {
      throw new UsageError(`retention needs --keep-days with a whole number from 1 to ${maxDays}`);
    }
    return await withDatabase(io, async ({ db, now }) => {
      await requireNamedTenant(db, tenant);
      const { horizon } = await setRetention(db, tenant, keepDays, now());
      io.answer(JSON.stringify({ tenant, keepDays, horizon: new Date(horizon).toISOString() }));
      return 0;
    });
  },
};
