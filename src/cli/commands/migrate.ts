import { readConfig } from '../../core/config/config.ts';
import { type Command, UsageError } from '../command.ts';
import { openDatabase } from '../open-database.ts';
import { migrateDatabase } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals migrate

Brings the database to the current schema and prints one JSON object that names the
migrations it ran. Several processes may run it at once. "annals serve" does the same.

Example:
  DATABASE_URL=postgres://annals@db.internal/annals annals migrate`,

  async run(args, io) {
    if (args.length > 0) throw new UsageError(`migrate takes no arguments, and was given ${args[0]}`);
    const database = await openDatabase(readConfig(io.environment), io.tell);
    try {
      const migrations = await migrateDatabase(database.url);
      io.answer(JSON.stringify({ migrations }));
    } finally {
      await database.release();
    }
    return 0;
  },
};
