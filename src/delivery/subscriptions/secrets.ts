import { type ErrorDetail, invalidBody } from '../../core/errors.ts';
import { mask, type Sealer } from '../../core/sealing.ts';
import type { SealedColumn } from '../../postgres/reseal.ts';
import type { StoredKey, Target, TargetMembers } from '../targets/target.ts';

/** A secret member of a target: a string, or strings by name. */
type Secret = string | Readonly<Record<string, string>>;

/** All secrets of a subscription, sealed together. */
export interface SubscriptionSecrets {
  /** By the name of the member. */
  readonly members: Readonly<Record<string, Secret>>;
  /** Keys that Annals generated, newest first. */
  readonly keys: readonly StoredKey[];
}

/** Binds the secrets to their row: they cannot be decrypted in another. */
function purposeOf(tenant: string, id: string): string {
  return `subscription ${tenant} ${id}`;
}

export function sealSecrets(sealer: Sealer, tenant: string, id: string, secrets: SubscriptionSecrets): Uint8Array {
  return sealer.seal(Buffer.from(JSON.stringify(secrets), 'utf8'), purposeOf(tenant, id));
}

/** Throws if no secret key decrypts them. */
export function openSecrets(
  sealer: Sealer,
  tenant: string,
  id: string,
  sealed: Uint8Array | null,
): SubscriptionSecrets {
  if (sealed === null) return { members: {}, keys: [] };
  const opened = sealer.open(sealed, purposeOf(tenant, id));
  if (opened === undefined) {
    throw new Error(`no key of ANNALS_SECRET_KEY opens the secrets of subscription ${id} of tenant ${tenant}`);
  }
  return JSON.parse(Buffer.from(opened).toString('utf8')) as SubscriptionSecrets;
}

export const sealedSubscriptions: SealedColumn = {
  table: 'subscription',
  column: 'sealed',
  keys: ['tenant', 'id'],
  purposeOf: ({ tenant, id }) => purposeOf(String(tenant), String(id)),
};

/** The target with its secrets in place of the masks. */
export function withSecrets(target: TargetMembers, { members }: SubscriptionSecrets): TargetMembers {
  return { ...target, ...members };
}

export interface SplitSecrets {
  /** The target with masks, as responses show it. */
  readonly shown: TargetMembers;
  readonly members: SubscriptionSecrets['members'];
  /** Paths of the secrets that were replaced. */
  readonly replaced: readonly string[];
}

/**
 * Separates the secrets from a target that a client sent. A mask keeps the stored secret if the host is unchanged;
 * otherwise this throws validation_violation.
 */
export function splitSecrets(
  target: Target,
  sent: TargetMembers,
  before: { readonly shown: TargetMembers; readonly secrets: SubscriptionSecrets } | undefined,
): SplitSecrets {
  const faults: ErrorDetail[] = [];
  const replaced: string[] = [];
  const sameHost =
    before !== undefined && before.shown.type === sent.type && target.hostOf(before.shown) === target.hostOf(sent);

  function take(field: string, value: string, stored: string | undefined): string {
    if (value !== mask) {
      if (stored !== undefined && stored !== value) replaced.push(field);
      return value;
    }
    if (stored !== undefined && sameHost) return stored;
    const message =
      stored === undefined
        ? 'must be the value itself, not the mask that responses show'
        : 'must be re-entered for another host';
    faults.push({ field, message });
    return value;
  }

  const members: Record<string, Secret> = {};
  const shown: Record<string, unknown> = {};
  for (const name of target.secrets) {
    const value = sent[name] as Secret | undefined;
    if (value === undefined) continue;
    const stored = before?.secrets.members[name];
    if (typeof value === 'string') {
      members[name] = take(`target.${name}`, value, typeof stored === 'string' ? stored : undefined);
      shown[name] = mask;
    } else {
      const storedValues = new Map(typeof stored === 'object' ? Object.entries(stored) : []);
      const entries = Object.entries(value);
      members[name] = Object.fromEntries(
        entries.map(([key, text]) => [key, take(`target.${name}.${key}`, text, storedValues.get(key))]),
      );
      shown[name] = Object.fromEntries(entries.map(([key]) => [key, mask]));
    }
  }
  if (faults.length > 0) throw invalidBody(...faults);
  return { shown: { ...sent, ...shown }, members, replaced };
}
