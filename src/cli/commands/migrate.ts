import { readConfig } from '../../core/config/config.ts';
import { parseCommand } from '../arguments.ts';
import type { Command } from '../command.ts';
import { openDatabase } from '../open-database.ts';
import { migrateDatabase } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals migrate

Migrates the database to the current schema, as "annals serve" does at its start, and prints
one JSON object with the migrations that ran. Several processes may run it at once.

Example:
  DATABASE_URL=postgres://annals@db.internal/annals annals migrate`,

  async run(args, io) {
    parseCommand('migrate', { args, options: {} });
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
