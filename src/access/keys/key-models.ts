import { AnnalsError } from '../../core/errors.ts';
import { providerNames } from '../../providers/port.ts';

/** Models per key. */
export const maxModels = 100;
const namedModel = new RegExp(`^(?:${providerNames.join('|')})/[^\\s,]{1,256}$`);

/** Throws validation_violation where a key with these scopes cannot have these models. */
export function checkModels(models: readonly string[], scopes: readonly string[]): void {
  const message = faultOf(models, scopes);
  if (message === undefined) return;
  throw new AnnalsError('validation_violation', `The models of a key ${message}.`, {
    details: [{ field: 'models', message }],
  });
}

function faultOf(models: readonly string[], scopes: readonly string[]): string | undefined {
  if (!scopes.includes('ai.completion_manage')) return 'need the scope ai.completion_manage';
  if (models.length === 0 || models.length > maxModels) return `must be 1 to ${maxModels}`;
  return models.every((model) => namedModel.test(model))
    ? undefined
    : `must be written as ${providerNames.map((name) => `${name}/…`).join(', ')}`;
}
