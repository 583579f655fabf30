import { listSessions } from '../../access/sessions/listed-sessions.ts';
import { OperatorError } from '../../core/errors.ts';
import { parseCommand, runAction } from '../arguments.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import { listOfTenant } from '../credential-commands.ts';
import { requireNamedTenant } from '../require-tenant.ts';
import { withContext } from '../with-context.ts';

export const command: Command = {
  help: `Usage: annals session list --tenant T
       annals session end --tenant T SESSION_ID
       annals session end --tenant T --issuer URL --subject S

list prints a JSON array of the active sessions of the console: who is signed in, since when,
last seen (to the minute), address and browser. end ends one of them, or all of a person, by
what their OpenID provider knows them by, with the keys and clients that a person made in
them. It takes effect within 5 seconds, in every process. A client whose secret is known can
sign in again: revoke the client. A person can sign in again as long as a rule lets them in.

Examples:
  annals session end --tenant acme 8f3c21a90b7d4e65
  annals session end --tenant acme --issuer https://login.example.com --subject u-1`,

  run: runAction('session', { list: (args, io) => listOfTenant('session list', args, io, listSessions), end }),
};

/** As accesses name who ended a session from the command line. */
const operator = { name: 'operator' } as const;

async function end(args: string[], io: CommandIo): Promise<number> {
  const { values, positionals } = parseCommand('session end', {
    args,
    options: { tenant: { type: 'string' }, issuer: { type: 'string' }, subject: { type: 'string' } },
    allowPositionals: true,
  });
  const { tenant, issuer, subject } = values;
  const [id, ...others] = positionals;
  const isOfPerson = issuer !== undefined && subject !== undefined && id === undefined;
  const isOne = id !== undefined && others.length === 0 && issuer === undefined && subject === undefined;
  if (tenant === undefined || !(isOfPerson || isOne))
    throw new UsageError('session end needs --tenant, and one SESSION_ID or --issuer and --subject');
  return await withContext(io, async ({ db, webConsole: { sessions } }) => {
    await requireNamedTenant(db, tenant);
    if (isOfPerson) {
      const ended = await sessions.endAllOf(tenant, { issuer, subject }, operator);
      io.answer(JSON.stringify({ tenant, issuer, subject, ended }));
      return 0;
    }
    if (id === undefined || !(await sessions.endById(tenant, id, operator)))
      throw new OperatorError(`there is no active session ${id} of the tenant ${tenant}`);
    io.answer(JSON.stringify({ id, tenant, ended: true }));
    return 0;
  });
}
