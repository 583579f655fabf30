import { readFile } from 'node:fs/promises';
import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { ConfigError } from '../core/config/config.ts';

/** The most faults of a file that one start names. */
const maxFaults = 10;

export interface CheckedFile<Schema extends TSchema> {
  /** The setting that names the file. */
  readonly setting: string;
  readonly schema: Schema;
  /** What the file is, for people. */
  readonly what: string;
  /** What the schema cannot say. */
  readonly faultsOf: (content: Static<Schema>) => string[];
}

/** What a JSON file of an operator has. Throws a ConfigError that names the faults of the file, and the setting. */
export async function readCheckedFile<Schema extends TSchema>(
  file: string,
  { setting, schema, what, faultsOf }: CheckedFile<Schema>,
): Promise<Static<Schema>> {
  const faulty = (...told: string[]) => new ConfigError(told.map((fault) => `${setting} ${fault}`));
  let given: unknown;
  try {
    given = JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) throw faulty('is not JSON');
    throw faulty(`cannot be read${error instanceof Error && 'code' in error ? ` (${error.code})` : ''}`);
  }
  const check = Compile(schema);
  if (!check.Check(given)) {
    const describe = ({ instancePath, message }: { instancePath: string; message: string }) =>
      `is not ${what}: ${instancePath === '' ? 'it' : instancePath} ${message}`;
    throw faulty(...check.Errors(given).slice(0, maxFaults).map(describe));
  }
  const faults = faultsOf(given);
  if (faults.length > 0) throw faulty(...faults.slice(0, maxFaults));
  return given;
}

/** The names that a list has more than once, each one time. */
export function repeated(names: readonly string[]): string[] {
  return [...new Set(names.filter((name, index) => names.indexOf(name) !== index))];
}
