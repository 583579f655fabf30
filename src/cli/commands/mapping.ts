import { OperatorError } from '../../core/errors.ts';
import { readSource, type Source, withSource } from '../../postgres/source/source.ts';
import { tenantPattern } from '../../postgres/tenants/tenants.ts';
import { type CaptureScript, captureScript } from '../../sources/capture/capture-script.ts';
import { checkMapping, checkMappingAt } from '../../sources/capture/check-mapping.ts';
import { slotPattern } from '../../sources/capture/slot.ts';
import type { TableFault } from '../../sources/capture/table-faults.ts';
import { readApplicationTables } from '../../sources/draft/application-tables.ts';
import { draftMapping, linesOfDraft, textOfMapping } from '../../sources/draft/draft-mapping.ts';
import { onlyOperand, parseCommand, runAction } from '../arguments.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import { mappingOfFile } from '../mapping-file.ts';
import { forOperators, sourceOf } from '../source-option.ts';

export const command: Command = {
  help: `Usage: annals mapping init --from URL [--tenant T]
       annals mapping check FILE [--from URL] [--sql] [--slot NAME]

init drafts a mapping from the catalogue of a PostgreSQL database: keys become ids, foreign
keys become related documents, and columns whose names suggest secrets are masked. Timestamps
of the last update are ignored. Queues, sessions, migrations and tables without a key are left
out. Guesses and omissions are listed on stderr. Review both: the draft relies on names
alone. Changes nothing. Without --tenant, the tenant is the name of the database.

check validates a mapping and prints what Annals would record of each table, one JSON object a
line. With --from (or ANNALS_SOURCE_URL) it also reads the catalogue of that PostgreSQL
database, and prints the recorded columns with the form of their values, and the problems that
prevent recording, with the statements that solve them. Its advice names tables for which
replica identity full would give better entries, and ids that look like secrets. Changes
nothing. The exit code is 1 if the mapping has faults or a table has problems.

With --sql it prints one SQL script instead, with all that annals capture lacks at the source:
replica identities, the publication (named annals, or as --slot says) and privileges. Optional
statements are comments. The exit code is 1 if no statement solves a problem.

Examples:
  annals mapping init --from postgres://annals_capture@db.example/shop --tenant acme > mapping.json
  annals mapping check mapping.json --from postgres://annals_capture@db.example/shop
  annals mapping check mapping.json --sql --from postgres://annals_capture@db.example/shop > capture.sql`,

  run: runAction('mapping', { init, check }),
};

async function init(args: string[], io: CommandIo): Promise<number> {
  const { values } = parseCommand('mapping init', {
    args,
    options: { from: { type: 'string' }, tenant: { type: 'string' } },
  });
  const { tenant } = values;
  if (tenant !== undefined && !tenantPattern.test(tenant))
    throw new UsageError(`${tenant} is not the name of a tenant: lower-case letters and digits, a letter first`);
  const source = sourceOf(values.from, io);
  const { tables, database } = await forOperators(() => readTables(source));
  if (tables.length === 0) throw new OperatorError(`the database ${database} has no tables of an application`);
  const draft = draftMapping(tables, tenant ?? tenantOf(database));
  io.answer(textOfMapping(draft.file));
  for (const line of linesOfDraft(draft, { tenantIsGuessed: tenant === undefined })) io.tell(line);
  return 0;
}

async function readTables(source: Source) {
  return await withSource(source, async (client) => {
    const tables = await readApplicationTables(client);
    const { rows } = await client.query<{ database: string }>('select current_database() as database');
    return { tables, database: rows[0]?.database ?? '' };
  });
}

/** The tenant that is named like a database, as far as the characters allow. */
function tenantOf(database: string): string {
  const name = database
    .toLowerCase()
    .replaceAll(/^[^a-z]+|[^a-z0-9]/g, '')
    .slice(0, 63);
  return tenantPattern.test(name) ? name : 'acme';
}

async function check(args: string[], io: CommandIo): Promise<number> {
  const { values, positionals } = parseCommand('mapping check', {
    args,
    options: { from: { type: 'string' }, sql: { type: 'boolean', default: false }, slot: { type: 'string' } },
    allowPositionals: true,
  });
  const file = onlyOperand(positionals, 'mapping check needs one FILE');
  const { slot } = values;
  if (slot !== undefined && !slotPattern.test(slot))
    throw new UsageError('--slot takes lower-case letters, digits and _, a letter first, 63 characters at most');
  const mapping = await mappingOfFile(file);
  if (values.sql) return await printScript(io, () => captureScript(mapping, sourceOf(values.from, io), slot));
  const from = values.from ?? io.environment.ANNALS_SOURCE_URL;
  const reports =
    from === undefined || from === ''
      ? checkMapping(mapping)
      : await forOperators(() => checkMappingAt(mapping, readSource(from), slot));
  for (const report of reports) {
    const [missing, advice] = [report.missing, report.advice].map((faults) =>
      faults.map(({ message, statement }) => ({ message, statement })),
    );
    io.answer(JSON.stringify({ ...report, missing, advice }));
  }
  const missing = reports.flatMap((report) => report.missing);
  const advice = reports.flatMap((report) => report.advice);
  tellFaults(io, missing, 'annals:', 'run:');
  tellFaults(io, advice, 'annals: note:', 'to have that, run:');
  return missing.length === 0 ? 0 : 1;
}

async function printScript(io: CommandIo, make: () => Promise<CaptureScript>): Promise<number> {
  const { text, unsolved } = await forOperators(make);
  io.answer(text);
  tellFaults(io, unsolved, 'annals:', 'run:');
  return unsolved.length === 0 ? 0 : 1;
}

/** Prints a fault of several tables once. */
function tellFaults(io: CommandIo, faults: readonly TableFault[], start: string, run: string): void {
  for (const [reason, all] of Map.groupBy(faults, ({ message, group }) => group?.reason ?? message)) {
    const [{ message, statement } = { message: reason }] = all;
    if (all.length === 1) io.tell(`${start} ${message}${statement === undefined ? '' : `; ${run} ${statement}`}`);
    else {
      const items = all.flatMap(({ group }) => group?.item ?? []);
      io.tell(`${start} ${reason}: ${items.join(', ')}; --sql prints the statements`);
    }
  }
}
