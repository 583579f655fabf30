import { AnnalsError } from '../../core/errors.ts';
import type { Credentials } from '../../http/credentials.ts';
import type { ProviderName } from '../../providers/port.ts';
import type { OwnModel } from '../../providers/provider-caller.ts';
import { formatLimits } from './limits.ts';
import { Members, refused } from './members.ts';

/** A tenant's own key and its configuration item. */
export interface OwnKey extends Pick<OwnModel, 'hasBudgets'> {
  readonly item: string;
  readonly token: string;
  readonly baseUrl?: string;
}

/** Reads the tenant's own keys. */
export type KeysOf = (tenant: string) => Promise<Partial<Record<ProviderName, OwnKey>>>;

/** The caller's credentials. */
export type Caller = Pick<Credentials, 'tenant' | 'clientId' | 'makerId' | 'models' | 'user'>;

/** The caller of a model; `header`: the end user of the request's header. */
export type ModelCaller = Caller & { readonly header: string | undefined };

/** The model that a body names. Read first: it decides what becomes of the request. */
export function modelOf(body: unknown): string {
  const isObject = typeof body === 'object' && !Array.isArray(body);
  const model = new Members(isObject ? (body ?? {}) : {}, '').name('model', formatLimits.modelCharacters);
  if (model === undefined) throw refused('model', 'is required, as a string');
  return model;
}

export function unknownModel(name: string): AnnalsError {
  const shown = name.slice(0, 256).toWellFormed();
  const message = `There is no model ${JSON.stringify(shown)}: it is not known, the tenant has no key of its provider, or your key may not call it.`;
  return new AnnalsError('resource_not_found', message, { details: [{ field: 'model', message }] });
}
