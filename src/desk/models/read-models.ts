import { duplicates, readCheckedFile } from '../checked-file.ts';
import { builtInModels } from './catalogue.ts';
import { listedProviders, ModelList } from './schemas.ts';

/**
 * The listed models, from ANNALS_MODELS_FILE or else the built-in catalogue: always the three provider groups, in
 * order. Throws a ConfigError with the faults of the file.
 */
export async function readModels(file: string | undefined): Promise<ModelList> {
  if (file === undefined) return builtInModels;
  const providerGroups = await readCheckedFile(file, {
    setting: 'ANNALS_MODELS_FILE',
    schema: ModelList,
    what: 'a list of models',
    faultsOf: (groups) => duplicates(namesOf(groups)).map((name) => `names ${name} twice`),
  });
  return listedProviders.map((provider) => ({
    provider,
    models: providerGroups.find((group) => group.provider === provider)?.models ?? [],
  }));
}

function namesOf(groups: ModelList): string[] {
  return groups.flatMap(({ provider, models }) => [
    `the provider ${provider}`,
    ...models.map(({ id }) => `the model ${id} of ${provider}`),
  ]);
}
