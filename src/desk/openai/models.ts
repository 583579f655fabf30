import { AnnalsError } from '../../core/errors.ts';
import { type ProviderName, providerNames } from '../../providers/port.ts';
import type { ModelList } from '../models/schemas.ts';

/** The model of a request. */
export interface NamedModel {
  readonly provider: ProviderName;
  readonly model: string;
}

/** A model in `GET /models`. */
export interface ListedModel {
  readonly id: string;
  readonly object: 'model';
  readonly created: number;
  readonly owned_by: string;
}

/** `provider/model`, or the bare id of a model of the catalogue; undefined for anything else. */
export function modelNamed(name: string, catalogue: ModelList): NamedModel | undefined {
  const slash = name.indexOf('/');
  const provider = providerNames.find((prefix) => prefix === name.slice(0, Math.max(0, slash)));
  const model = name.slice(slash + 1);
  if (provider !== undefined && model !== '') return { provider, model };
  const group = catalogue.find(({ models }) => models.some(({ id }) => id === name));
  return group && { provider: group.provider, model: name };
}

/** The models that a tenant may call: of the providers of its keys, and the one of the shared token. */
export function modelsOf(
  catalogue: ModelList,
  { own, shared }: { own: readonly ProviderName[]; shared: string | undefined },
): ListedModel[] {
  const listed = catalogue.flatMap(({ provider, models }) =>
    own.includes(provider) ? models.map(({ id }) => listedModel({ provider, model: id })) : [],
  );
  return own.includes('openai') || shared === undefined
    ? listed
    : [listedModel({ provider: 'openai', model: shared }), ...listed];
}

/** `created` is required by the format but unknown for the catalogue. */
export function listedModel({ provider, model }: NamedModel): ListedModel {
  return { id: `${provider}/${model}`, object: 'model', created: 0, owned_by: provider };
}

export function unknownModel(name: string): AnnalsError {
  const shown = name.slice(0, 256).toWellFormed();
  const message = `There is no model ${JSON.stringify(shown)}: it is not known, the tenant has no key of its provider, or your key may not call it.`;
  return new AnnalsError('resource_not_found', message, { details: [{ field: 'model', message }] });
}
