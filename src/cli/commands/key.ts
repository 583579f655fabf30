import { createKey, listKeys, revokeKey } from '../../access/keys/key-store.ts';
import { OperatorError } from '../../core/errors.ts';
import { onlyOperand, parseCommand, runAction } from '../arguments.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import {
  credentialOf,
  credentialOptions,
  keyOptions,
  listOfTenant,
  namesOf,
  narrowCredential,
  rateOf,
  rotateCredential,
} from '../credential-commands.ts';
import { withInterruptibleDatabase } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals key create --tenant T --scope S [--query Q] [--hide PATHS]
                         [--actors none|names|all] [--models M] [--rate N]
                         [--user U] [--expires P90D] [--name N]
       annals key list --tenant T
       annals key narrow --tenant T KEY_ID [--scope S] [--query Q] [--hide PATHS]
                         [--actors none|names|all] [--models M] [--rate N] [--expires P90D]
       annals key rotate --tenant T KEY_ID
       annals key revoke --tenant T KEY_ID

A key is for programs that cannot renew tokens. It is a bearer token for /mcp/T with the scope
changelog.changelog_read, and for /openai/T and /anthropic/T with ai.completion_manage; nothing else accepts
it. create prints one JSON object with the key. The key is shown once; Annals stores only a
hash of its secret. --query, --hide and --actors limit what it sees, as for clients; a key
with any of them cannot call models. --models limits it to these:
"openai/gpt-5 anthropic/claude-sonnet-4-5". --rate limits it to N requests a second over all
processes; more get 429. --user is the end user of all its calls of models, whom budgets of
users limit; a call that names another is 403. --expires is an ISO 8601 duration; without it
the key does not expire. list prints a JSON array, with the last use and who made the key.

narrow only removes rights: --scope and --models name those that stay, --query and --hide are
added to those that there are. rotate prints a new key of the same id; the old one stops
working. Each, and revoke, takes effect within 5 seconds, in every process.

Example:
  annals key create --tenant acme --scope changelog.changelog_read --expires P90D --name "Claude of Jane"`,

  run: runAction('key', {
    create,
    list: (args, io) => listOfTenant('key list', args, io, listKeys),
    narrow: (args, io) => narrowCredential('key', args, io),
    rotate: (args, io) => rotateCredential('key', args, io),
    revoke,
  }),
};

async function create(args: string[], io: CommandIo): Promise<number> {
  const { values } = parseCommand('key create', {
    args,
    options: { ...credentialOptions, ...keyOptions, user: { type: 'string' } },
  });
  const { scope, ...credential } = credentialOf('key create', values);
  const scopes = scope.split(' ').filter((text) => text !== '');
  const description = {
    ...credential,
    scopes,
    models: namesOf(values.models),
    rate: rateOf(values.rate),
    user: values.user,
  };
  io.answer(JSON.stringify(await withInterruptibleDatabase(io, ({ db }) => createKey(db, description))));
  return 0;
}

async function revoke(args: string[], io: CommandIo): Promise<number> {
  const { values, positionals } = parseCommand('key revoke', {
    args,
    options: { tenant: { type: 'string' } },
    allowPositionals: true,
  });
  const { tenant } = values;
  const id = onlyOperand(positionals, 'key revoke needs --tenant and one KEY_ID');
  if (tenant === undefined) throw new UsageError('key revoke needs --tenant and one KEY_ID');
  const found = await withInterruptibleDatabase(io, ({ db }) => revokeKey(db, tenant, id));
  if (!found) throw new OperatorError(`there is no key ${id} of the tenant ${tenant}`);
  io.answer(JSON.stringify({ id, tenant, revoked: true }));
  return 0;
}
