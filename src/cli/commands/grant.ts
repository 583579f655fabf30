import { listGrants } from '../../access/grants/grant-store.ts';
import { OperatorError } from '../../core/errors.ts';
import { onlyOperand, parseCommand, runAction } from '../arguments.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import { listOfTenant } from '../credential-commands.ts';
import { requireNamedTenant } from '../require-tenant.ts';
import { withContext } from '../with-context.ts';

export const command: Command = {
  help: `Usage: annals grant list --tenant T
       annals grant revoke --tenant T GRANT_ID

list prints a JSON array of what people allowed programs that signed in: the program, the
person, where the answer went, since when, until when and last use. revoke ends one of them
within 5 seconds, in every process. The person can allow the program again.

Examples:
  annals grant revoke --tenant acme 5be0c1f2a3948d67`,

  run: runAction('grant', {
    list: (args, io) => listOfTenant('grant list', args, io, (db, tenant) => listGrants(db, tenant)),
    revoke,
  }),
};

async function revoke(args: string[], io: CommandIo): Promise<number> {
  const options = { tenant: { type: 'string' } } as const;
  const { values, positionals } = parseCommand('grant revoke', { args, options, allowPositionals: true });
  const needed = 'grant revoke needs --tenant and one GRANT_ID';
  const id = onlyOperand(positionals, needed);
  const { tenant } = values;
  if (tenant === undefined) throw new UsageError(needed);
  return await withContext(io, async ({ db, webConsole: { sessions } }) => {
    await requireNamedTenant(db, tenant);
    const ended = await sessions.write(tenant, (transaction) =>
      sessions.endGrants(transaction, tenant, { id }, { by: { name: 'operator' } }),
    );
    if (ended === 0) throw new OperatorError(`there is no active grant ${id} of the tenant ${tenant}`);
    io.answer(JSON.stringify({ id, tenant, revoked: true }));
    return 0;
  });
}
