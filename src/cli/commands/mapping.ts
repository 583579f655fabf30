import { readSource, type Source, withSource } from '../../postgres/source/source.ts';
import { tenantPattern } from '../../postgres/tenants/tenants.ts';
import { checkMapping, checkMappingAt } from '../../sources/capture/check-mapping.ts';
import { readApplicationTables } from '../../sources/draft/application-tables.ts';
import { draftMapping } from '../../sources/draft/draft-mapping.ts';
import { linesOfDraft, textOfMapping } from '../../sources/draft/draft-texts.ts';
import { noSuchAction, parseCommand } from '../arguments.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import { mappingOfFile } from '../mapping-file.ts';
import { forOperators, sourceOf } from '../source-option.ts';

export const command: Command = {
  help: `Usage: annals mapping init --from URL [--tenant T]
       annals mapping check FILE [--from URL]

init prints a mapping to begin with, from the catalogue of a PostgreSQL database: keys become
ids, foreign keys related documents, and columns whose names sound like secrets are masked.
Timestamps that only say when a row was touched are ignored. Queues, sessions, migrations and
tables without a key are left out. It says on stderr what it guessed and left out. Read both:
names are all that it sees. It changes nothing. Without --tenant, the tenant is the name of
the database.

check checks a mapping and prints what Annals would record of each table, one JSON object a line.
With --from (or ANNALS_SOURCE_URL) it also reads the catalogue of that PostgreSQL database.
Then it prints the recorded columns with the form of their values, and the problems that
prevent recording, with the statements that solve them. Its advice says where replica identity
full would give better entries, and which ids seem to be secrets. It changes no data. The exit
code is 1 if the mapping has faults or a table has problems.

Examples:
  annals mapping init --from postgres://annals_capture@db.example/shop --tenant acme > mapping.json
  annals mapping check mapping.json --from postgres://annals_capture@db.example/shop`,

  async run([action, ...args], io) {
    if (action === 'init') return await init(args, io);
    if (action === 'check') return await check(args, io);
    throw noSuchAction('mapping', action, ['init', 'check']);
  },
};

async function init(args: string[], io: CommandIo): Promise<number> {
  const { values } = parseCommand('mapping init', {
    args,
    options: { from: { type: 'string' }, tenant: { type: 'string' } },
  });
  const { tenant } = values;
  if (tenant !== undefined && !tenantPattern.test(tenant))
    throw new UsageError(`${tenant} is no name of a tenant: lower-case letters and digits, a letter first`);
  const source = sourceOf(values.from, io);
  const { tables, database } = await forOperators(() => readTables(source));
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

/** The name of a database as that of a tenant. */
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
    options: { from: { type: 'string' } },
    allowPositionals: true,
  });
  const [file, ...others] = positionals;
  if (file === undefined || others.length > 0) throw new UsageError('mapping check needs one FILE');
  const mapping = await mappingOfFile(file);
  const from = values.from ?? io.environment.ANNALS_SOURCE_URL;
  const reports =
    from === undefined || from === ''
      ? checkMapping(mapping)
      : await forOperators(() => checkMappingAt(mapping, readSource(from)));
  for (const report of reports) io.answer(JSON.stringify(report));
  const missing = reports.flatMap((report) => report.missing);
  for (const { message, statement } of missing) {
    io.tell(`annals: ${message}${statement === undefined ? '' : `; run: ${statement}`}`);
  }
  for (const { message, statement } of reports.flatMap((report) => report.advice)) {
    io.tell(`annals: note: ${message}${statement === undefined ? '' : `; to have that, run: ${statement}`}`);
  }
  return missing.length === 0 ? 0 : 1;
}
