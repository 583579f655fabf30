import { holdReasons, holdTenant, releaseTenant } from '../../history/retention/hold.ts';
import { findHold } from '../../postgres/tenants/tenants.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { parseCommand } from '../arguments.ts';
import { type Command, UsageError } from '../command.ts';
import { requireNamedTenant } from '../require-tenant.ts';
import { withDatabase } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals hold --tenant T --reason lawsuit|investigation|audit|other
       annals hold --tenant T --release
       annals hold --tenant T

Puts a tenant on hold: until --release, none of its history is dropped or erased, and the
tenant cannot be deleted. Days that its retention would have dropped are dropped after the
release. Without either option it prints the tenant's hold. Hold and release are recorded in
the history, each with a receipt. Prints one JSON object: tenant, heldSince and reason, both
null without a hold.

Example:
  annals hold --tenant acme --reason lawsuit`,

  async run(args, io) {
    const { values } = parseCommand('hold', {
      args,
      options: { tenant: { type: 'string' }, reason: { type: 'string' }, release: { type: 'boolean', default: false } },
    });
    const { tenant, release } = values;
    const reason = holdReasons.find((known) => known === values.reason);
    if (tenant === undefined) throw new UsageError('hold needs --tenant');
    if (release && values.reason !== undefined) throw new UsageError('hold takes --reason or --release');
    if (reason !== values.reason) throw new UsageError(`hold needs a --reason of ${holdReasons.join(', ')}`);
    return await withDatabase(io, async ({ db, now }) => {
      await requireNamedTenant(db, tenant);
      if (release) await releaseTenant(db, tenant, now());
      if (reason !== undefined) await holdTenant(db, tenant, reason, now());
      const hold = await inTransaction(db, (transaction) => findHold(transaction, tenant));
      const heldSince = hold === undefined ? null : new Date(hold.since).toISOString();
      io.answer(JSON.stringify({ tenant, heldSince, reason: hold?.reason ?? null }));
      return 0;
    });
  },
};
