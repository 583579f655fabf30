import { AnnalsError, OperatorError } from '../../core/errors.ts';
import { listForOperator, type OperatorLine } from '../../delivery/subscriptions/operator-list.ts';
import type { Subscriptions } from '../../delivery/subscriptions/service.ts';
import { parseCommand, runAction } from '../arguments.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import { requireNamedTenant } from '../require-tenant.ts';
import { withContext } from '../with-context.ts';
import { withInterruptibleDatabase } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals subscription list [--tenant T]
       annals subscription pause --tenant T ID …
       annals subscription resume --tenant T [--from CURSOR] ID …

list prints one JSON object a line: tenant, id, name, type (of the target), state, reason,
pending, parked, lastDelivery and lastError.

pause and resume do the same as the HTTP operations, for one or more subscriptions, while the
service runs. They print one JSON object a line: tenant, id, state and reason. At the first
failure they print the reason and exit with 1; earlier ones are done.

  --from CURSOR  where to resume: a cursor of the feed, start or now. Only for a subscription
                 that lost its position when the database was restored

Examples:
  annals subscription list --tenant acme
  annals subscription resume --tenant acme prices-to-erp`,

  run: runAction('subscription', { list, pause, resume }),
};

async function pause(args: string[], io: CommandIo): Promise<number> {
  const options = { tenant: { type: 'string' } } as const;
  const { values, positionals } = parseCommand('subscription pause', { args, options, allowPositionals: true });
  return await each('pause', values.tenant, positionals, io, (subscriptions, tenant, id) =>
    subscriptions.pause(tenant, id),
  );
}

async function resume(args: string[], io: CommandIo): Promise<number> {
  const options = { tenant: { type: 'string' }, from: { type: 'string' } } as const;
  const { values, positionals } = parseCommand('subscription resume', { args, options, allowPositionals: true });
  return await each('resume', values.tenant, positionals, io, (subscriptions, tenant, id) =>
    subscriptions.resume(tenant, id, values.from),
  );
}

async function list(args: string[], io: CommandIo): Promise<number> {
  const { values } = parseCommand('subscription list', { args, options: { tenant: { type: 'string' } } });
  const { tenant } = values;
  return await withInterruptibleDatabase(io, async ({ db }) => {
    if (tenant !== undefined) await requireNamedTenant(db, tenant);
    let after: OperatorLine | undefined;
    do {
      const lines = await listForOperator(db, tenant, after);
      for (const { text } of lines) io.answer(text);
      after = lines.at(-1);
    } while (after !== undefined);
    return 0;
  });
}

/** Runs the work for one subscription after another, and prints the state of each afterwards. */
async function each(
  action: string,
  tenant: string | undefined,
  ids: readonly string[],
  io: CommandIo,
  work: (subscriptions: Subscriptions, tenant: string, id: string) => Promise<void>,
): Promise<number> {
  if (tenant === undefined || ids.length === 0) {
    throw new UsageError(`subscription ${action} needs --tenant and at least one ID`);
  }
  return await withContext(io, async ({ db, subscriptions }, _config, watch) => {
    await requireNamedTenant(db, tenant);
    for (const id of ids) {
      if (watch.reason !== undefined) throw new OperatorError(watch.reason);
      try {
        await work(subscriptions, tenant, id);
        const { state, reason } = JSON.parse(await subscriptions.find(tenant, id)) as {
          state: string;
          reason?: string;
        };
        io.answer(JSON.stringify({ tenant, id, state, reason }));
      } catch (error) {
        throw error instanceof AnnalsError ? namedFault(tenant, id, error) : error;
      }
    }
    return 0;
  });
}

/** The error with the subscription's name, since the command takes several. */
function namedFault(tenant: string, id: string, error: AnnalsError): OperatorError {
  if (error.type === 'resource_not_found') return new OperatorError(`${tenant} has no subscription ${id}`);
  const details = error.details.map(({ field, message }) => `${field} ${message}`);
  return new OperatorError(
    `subscription ${id} of ${tenant}: ${details.length > 0 ? details.join('; ') : error.message}`,
  );
}
