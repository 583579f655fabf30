import { readFile } from 'node:fs/promises';
import { Compile } from 'typebox/compile';
import { ConfigError } from '../../core/config/config.ts';
import { builtInModels } from './catalogue.ts';
import { listedProviders, ModelList } from './schemas.ts';

const check = Compile(ModelList);
const maxFaults = 10;

/**
 * The models to list, from ANNALS_MODELS_FILE or, without it, from the built-in catalogue. Always the three provider
 * groups, in order. Throws a ConfigError that names the fault in the file.
 */
export async function readModels(file: string | undefined): Promise<ModelList> {
  if (file === undefined) return builtInModels;
  const given = parse(await read(file));
  if (!check.Check(given)) {
    throw faulty(...check.Errors(given).slice(0, maxFaults).map(describe));
  }
  const repeated = repeatedNames(given);
  if (repeated.length > 0) throw faulty(...repeated.map((name) => `names ${name} twice`));
  return listedProviders.map((provider) => ({
    provider,
    models: given.find((group) => group.provider === provider)?.models ?? [],
  }));
}

async function read(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${error.code})` : '';
    throw faulty(`cannot be read${code}`);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw faulty('is not JSON');
  }
}

function describe({ instancePath, message }: { instancePath: string; message: string }): string {
  return `is not a list of models: ${instancePath === '' ? 'it' : instancePath} ${message}`;
}

function repeatedNames(groups: ModelList): string[] {
  const names = groups.flatMap(({ provider, models }) => [
    `the provider ${provider}`,
    ...models.map(({ id }) => `the model ${id} of ${provider}`),
  ]);
  return [...new Set(names.filter((name, index) => names.indexOf(name) !== index))];
}

function faulty(...faults: string[]): ConfigError {
  return new ConfigError(faults.map((fault) => `ANNALS_MODELS_FILE ${fault}`));
}
