import { createTenant, tenantPattern } from '../db/tenants.ts';
import { type Command, UsageError } from './command.ts';
import { withInterruptibleDatabase } from './with-database.ts';

export const tenantCommand: Command = {
  help: `Usage: annals tenant create NAME

Makes a tenant and prints it as one JSON object. A second call is no error. The name is
lower-case letters and digits, a letter first, 2 to 63 of them.

Example:
  annals tenant create acme`,

  async run([action, name, ...others], io) {
    if (action !== 'create') throw new UsageError(action === undefined ? 'tenant what?' : `tenant cannot ${action}`);
    if (name === undefined) throw new UsageError('tenant create needs a NAME');
    if (others.length > 0) throw new UsageError(`tenant create takes one NAME, and was given ${others[0]} besides`);
    if (!tenantPattern.test(name)) {
      throw new UsageError('the NAME of a tenant is lower-case letters and digits, a letter first, 2 to 63 of them');
    }
    const created = await withInterruptibleDatabase(io, ({ db }) => createTenant(db, name));
    io.answer(JSON.stringify({ tenant: name, created }));
    return 0;
  },
};
