import { createClient, listClients, revokeClient } from '../../access/oauth/clients.ts';
import { OperatorError } from '../../core/errors.ts';
import { onlyOperand, parseCommand, runAction } from '../arguments.ts';
import type { Command, CommandIo } from '../command.ts';
import {
  credentialOf,
  credentialOptions,
  listOfTenant,
  narrowCredential,
  rotateCredential,
} from '../credential-commands.ts';
import { withInterruptibleDatabase } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals client create --tenant T --scope "A B" [--name N] [--query Q] [--hide PATHS]
                            [--actors none|names|all] [--expires P90D]
       annals client list --tenant T
       annals client narrow CLIENT_ID [--scope "A B"] [--query Q] [--hide PATHS]
                            [--actors none|names|all] [--expires P90D]
       annals client rotate CLIENT_ID
       annals client revoke CLIENT_ID

create prints one JSON object with the client's id and secret. The secret is shown once;
Annals stores only its hash. The name is the actor of its changes; default: the client's id.
--query limits the client to the changes that match, and --hide (paths separated by blanks or
commas) masks the values at these paths. Such a client sees the names of actors (--actors
names); with --actors all also their ids, on whose behalf they acted and correlation ids,
with none not even the names. It can only have the scopes changelog.changelog_read and
changelog.viewer_issue. --expires is an ISO 8601 duration; without it the client does not
expire. list prints a JSON array, without secrets, with the last use and who made the client.

narrow only removes rights: --scope names the scopes that stay, --query and --hide are added
to those that there are. rotate prints a new secret; the old one, its tokens and its sessions
of the console end. revoke ends the client, and all that it made over HTTP. Each takes effect
within 5 seconds, in every process.

Example:
  annals client create --tenant acme --scope "changelog.changelog_read" --name "Jane Doe"
  annals client create --tenant acme --scope "changelog.changelog_read" --query "entity:order" \\
    --hide "payment.card customer.*.phone"`,

  run: runAction('client', {
    create,
    list: (args, io) => listOfTenant('client list', args, io, listClients),
    narrow: (args, io) => narrowCredential('client', args, io),
    rotate: (args, io) => rotateCredential('client', args, io),
    revoke,
  }),
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
  const clientId = onlyOperand(positionals, 'client revoke needs one CLIENT_ID');
  const found = await withInterruptibleDatabase(io, ({ db }) => revokeClient(db, clientId));
  if (!found) throw new OperatorError(`there is no client ${clientId}`);
  io.answer(JSON.stringify({ clientId, revoked: true }));
  return 0;
}
