import { createClient, listClients, revokeClient } from '../../access/oauth/clients.ts';
import { OperatorError } from '../../core/errors.ts';
import { noSuchAction, parseCommand } from '../arguments.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import { credentialOf, credentialOptions } from '../credential-options.ts';
import { listOfTenant } from '../list-of-tenant.ts';
import { withInterruptibleDatabase } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals client create --tenant T --scope "A B" [--name N] [--query Q] [--hide PATHS]
       annals client list --tenant T
       annals client revoke CLIENT_ID

create prints one JSON object with the client's id and secret. Annals shows the secret only
once, and stores only its hash. Change entries have the name as actor; the default is the
client's id. With --query the client sees only the changes that match. With --hide (paths
with blanks or commas between) it sees masks in place of the values at these paths. Such a
client can have changelog.changelog_read and changelog.viewer_issue alone. list prints a
JSON array, without secrets. The tokens of a revoked client stop working within 5 seconds, in
every process.

Example:
  annals client create --tenant acme --scope "changelog.changelog_read" --name "Jane Doe"
  annals client create --tenant acme --scope "changelog.changelog_read" --query "entity:order" \\
    --hide "payment.card customer.*.phone"`,

  async run([action, ...args], io) {
    if (action === 'create') return await create(args, io);
    if (action === 'list') return await listOfTenant('client list', args, io, listClients);
    if (action === 'revoke') return await revoke(args, io);
    throw noSuchAction('client', action, ['create', 'list', 'revoke']);
  },
};

async function create(args: string[], io: CommandIo): Promise<number> {
  const { values } = parseCommand('client create', { args, options: credentialOptions });
  const described = credentialOf('client create', values);
  const client = await withInterruptibleDatabase(io, ({ db }) => createClient(db, described));
  io.answer(JSON.stringify(client));
  return 0;
}

async function revoke(args: string[], io: CommandIo): Promise<number> {
  const { positionals } = parseCommand('client revoke', { args, options: {}, allowPositionals: true });
  const [clientId, ...others] = positionals;
  if (clientId === undefined || others.length > 0) throw new UsageError('client revoke needs one CLIENT_ID');
  const found = await withInterruptibleDatabase(io, ({ db }) => revokeClient(db, clientId));
  if (!found) throw new OperatorError(`there is no client ${clientId}`);
  io.answer(JSON.stringify({ clientId, revoked: true }));
  return 0;
}
