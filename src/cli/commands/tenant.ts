import { revokeClients } from '../../access/oauth/clients.ts';
import { summariseTenants } from '../../history/search/history-summary.ts';
import { deleteTenant } from '../../postgres/tenants/delete-tenant.ts';
import { createTenant, refuseHeld, tenantExists, tenantPattern } from '../../postgres/tenants/tenants.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { parseCommand, runAction } from '../arguments.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import { ProgressLine } from '../progress-line.ts';
import { withInterruptibleDatabase } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals tenant create NAME
       annals tenant list
       annals tenant delete NAME --yes

create creates a tenant and prints it as one JSON object. Idempotent. The name has 2 to 63
lower-case letters and digits, and begins with a letter.

list prints one JSON object a line: name, createdAt, entries, oldestEntry and newestEntry.
entries counts the change entries within the tenant's retention.

delete removes a tenant with all its data: history, configuration, documents, agents, jobs
and clients. Its tokens stop working within 5 seconds. This cannot be undone, so it needs
--yes. A tenant on hold is not deleted. The service may run. If the command is interrupted,
run it again. Prints one JSON object: tenant, deleted, and rows, the number of deleted rows.

Example:
  annals tenant create acme`,

  run: runAction('tenant', { create, list, delete: remove }),
};

async function create(args: string[], io: CommandIo): Promise<number> {
  const { positionals } = parseCommand('tenant create', { args, options: {}, allowPositionals: true });
  const name = nameOf('create', positionals);
  const created = await withInterruptibleDatabase(io, ({ db }) => createTenant(db, name));
  io.answer(JSON.stringify({ tenant: name, created }));
  return 0;
}

async function list(args: string[], io: CommandIo): Promise<number> {
  parseCommand('tenant list', { args, options: {} });
  await withInterruptibleDatabase(io, async ({ db, now }) => {
    for await (const { name, createdAt, entries, oldest, newest } of summariseTenants(db, now())) {
      const [oldestEntry, newestEntry] = [oldest, newest].map((at) =>
        at === null ? null : new Date(at).toISOString(),
      );
      io.answer(JSON.stringify({ name, createdAt: createdAt.toISOString(), entries, oldestEntry, newestEntry }));
    }
  });
  return 0;
}

async function remove(args: string[], io: CommandIo): Promise<number> {
  const { values, positionals } = parseCommand('tenant delete', {
    args,
    options: { yes: { type: 'boolean' } },
    allowPositionals: true,
  });
  const tenant = nameOf('delete', positionals);
  if (values.yes !== true) {
    throw new UsageError(`tenant delete removes all data of ${tenant} for good; add --yes to confirm`);
  }
  const progress = new ProgressLine(io.stderr);
  const outcome = await withInterruptibleDatabase(io, async ({ db }) => {
    const deleted = await tenantExists(db, tenant);
    await inTransaction(db, (transaction) => refuseHeld(transaction, tenant));
    await revokeClients(db, tenant);
    const onProgress = (rows: number) => progress.show(`${rows} rows deleted`, undefined);
    return { tenant, deleted, rows: await deleteTenant(db, tenant, { onProgress }) };
  }).finally(() => progress.clear());
  io.answer(JSON.stringify(outcome));
  return 0;
}

function nameOf(action: string, [name, ...others]: string[]): string {
  if (name === undefined) throw new UsageError(`tenant ${action} needs a NAME`);
  if (others.length > 0) throw new UsageError(`tenant ${action} takes one NAME, and was also given ${others[0]}`);
  if (!tenantPattern.test(name)) {
    throw new UsageError('the NAME of a tenant is lower-case letters and digits, a letter first, 2 to 63 of them');
  }
  return name;
}
