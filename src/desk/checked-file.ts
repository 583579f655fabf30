import { readFile } from 'node:fs/promises';
import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { ConfigError } from '../core/config/config.ts';

/** Max. faults of a file reported at startup. */
const maxFaults = 10;

export interface CheckedFile<Schema extends TSchema> {
  /** The setting that names the file. */
  readonly setting: string;
  readonly schema: Schema;
  /** What the file is, for people. */
  readonly what: string;
  /** Checks that the schema cannot express. */
  readonly faultsOf: (content: Static<Schema>) => string[];
}

/** The content of an operator's JSON file. Throws a ConfigError with its faults and the setting. */
export async function readCheckedFile<Schema extends TSchema>(
  file: string,
  { setting, schema, what, faultsOf }: CheckedFile<Schema>,
): Promise<Static<Schema>> {
  const faulty = (...messages: string[]) => new ConfigError(messages.map((message) => `${setting} ${message}`));
  let content: unknown;
  try {
    content = JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) throw faulty('is not JSON');
    throw faulty(`cannot be read${error instanceof Error && 'code' in error ? ` (${error.code})` : ''}`);
  }
  const check = Compile(schema);
  if (!check.Check(content)) {
    const describe = ({ instancePath, message }: { instancePath: string; message: string }) =>
      `is not ${what}: ${instancePath === '' ? 'it' : instancePath} ${message}`;
    throw faulty(...check.Errors(content).slice(0, maxFaults).map(describe));
  }
  const faults = faultsOf(content);
  if (faults.length > 0) throw faulty(...faults.slice(0, maxFaults));
  return content;
}

/** The names that a list repeats, each once. */
export function duplicates(names: readonly string[]): string[] {
  return [...new Set(names.filter((name, index) => names.indexOf(name) !== index))];
}
