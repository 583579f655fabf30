import { readSource } from '../../postgres/source/source.ts';
import { checkMapping, checkMappingAt } from '../../sources/capture/check-mapping.ts';
import { noSuchAction, parseCommand } from '../arguments.ts';
import { type Command, UsageError } from '../command.ts';
import { mappingOfFile } from '../mapping-file.ts';
import { forOperators } from '../source-option.ts';

export const command: Command = {
  help: `Usage: annals mapping check FILE [--from URL]

Checks a mapping and prints what Annals would record of each table, one JSON object a line.
With --from (or ANNALS_SOURCE_URL) it also reads the catalogue of that PostgreSQL database.
Then it prints the recorded columns with the form of their values, and the problems that
prevent recording, with the statements that solve them. Its advice says where replica identity
full would give better entries, and which ids seem to be secrets. It changes no data. The exit
code is 1 if the mapping has faults or a table has problems.

Example:
  annals mapping check mapping.json --from postgres://annals_capture@db.example/shop`,

  async run([action, ...args], io) {
    if (action !== 'check') throw noSuchAction('mapping', action, ['check']);
    const { values, positionals } = parseCommand('mapping', {
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
  },
};
