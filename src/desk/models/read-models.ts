import { readCheckedFile, repeated } from '../checked-file.ts';
import { builtInModels } from './catalogue.ts';
import { listedProviders, ModelList } from './schemas.ts';

/**
 * The models to list, from ANNALS_MODELS_FILE or, without it, from the built-in catalogue. Always the three provider
 * groups, in order. Throws a ConfigError that names the fault in the file.
 */
export async function readModels(file: string | undefined): Promise<ModelList> {
  if (file === undefined) return builtInModels;
  const given = await readCheckedFile(file, {
    setting: 'ANNALS_MODELS_FILE',
    schema: ModelList,
    what: 'a list of models',
    faultsOf: (groups) => repeated(namesOf(groups)).map((name) => `names ${name} twice`),
  });
  return listedProviders.map((provider) => ({
    provider,
    models: given.find((group) => group.provider === provider)?.models ?? [],
  }));
}

function namesOf(groups: ModelList): string[] {
  return groups.flatMap(({ provider, models }) => [
    `the provider ${provider}`,
    ...models.map(({ id }) => `the model ${id} of ${provider}`),
  ]);
}
