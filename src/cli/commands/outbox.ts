import { removeOutbox } from '../../sources/outbox/outbox-schema.ts';
import { outboxSql } from '../../sources/outbox/outbox-sql.ts';
import { parseCommand } from '../arguments.ts';
import type { Command } from '../command.ts';
import { mappingOfFile } from '../mapping-file.ts';
import { mappingFileOf } from '../source-option.ts';

export const command: Command = {
  help: `Usage: annals outbox --mapping FILE
       annals outbox --remove

Prints SQL for an application's database (PostgreSQL 14 or later): an outbox, and triggers
that write each change of the mapped tables into it, in the same transaction. "annals relay"
records them. --remove prints SQL that drops both.

  --mapping FILE which tables become which documents; default: ANNALS_RECORDER_MAPPING

Example:
  annals outbox --mapping mapping.json | psql -v ON_ERROR_STOP=1 postgres://owner@shop.example/shop`,

  async run(args, io) {
    const { values } = parseCommand('outbox', {
      args,
      options: { mapping: { type: 'string' }, remove: { type: 'boolean', default: false } },
    });
    if (values.remove) {
      io.answer(removeOutbox);
      return 0;
    }
    io.answer(outboxSql(await mappingOfFile(mappingFileOf(values.mapping, io))));
    return 0;
  },
};
