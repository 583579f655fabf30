import { linkLifetime } from '../../access/sessions/links.ts';
import { type Config, readConfig } from '../../core/config/config.ts';
import { readingScopes } from '../../http/scopes.ts';
import { parseCommand, runAction } from '../arguments.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import { consoleAddress, makeConsoleLink } from '../console-link.ts';
import { urlOf } from '../listen.ts';
import { withInterruptibleDatabase } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals console link --tenant T [--name N] [--scope "A B"]

link prints a link that signs in to the console, valid once and for ${linkLifetime / 1000} seconds. It
creates a client without a secret, which "annals client list" shows and "annals client
revoke" revokes. Annals deletes the client with its session: at sign-out, or after 8 hours.
The name is the actor of its changes; default: the client's id. The default scopes are all
that only read.

The link begins with ANNALS_BASE_URL, or with HOST and PORT, so run the command with the
settings of the service.

Example:
  annals console link --tenant acme --name "Jane Doe"`,

  run: runAction('console', { link }),
};

async function link(args: string[], io: CommandIo): Promise<number> {
  const { values } = parseCommand('console link', {
    args,
    options: { tenant: { type: 'string' }, name: { type: 'string' }, scope: { type: 'string' } },
  });
  const { tenant, name, scope = readingScopes.join(' ') } = values;
  if (tenant === undefined) throw new UsageError('console link needs --tenant');
  const config = readConfig(io.environment);
  const made = await withInterruptibleDatabase(io, ({ db }) =>
    makeConsoleLink(db, { tenant, name, scope }, linkLifetime),
  );
  io.answer(consoleAddress(addressOf(config, io.tell), made));
  io.tell(`Valid once, for ${linkLifetime / 1000} seconds. It signs in ${made.clientId} with ${made.scope}`);
  return 0;
}

function addressOf({ baseUrl, host, port }: Config, tell: (line: string) => void): string {
  if (baseUrl !== undefined) return baseUrl;
  if (port === 0) tell('PORT is 0, so put the port of the service into the address.');
  return urlOf(host, port);
}
