import { mask } from '../../core/mask.ts';

/**
 * The keys of the tenant's own token for the first provider, which are always secured. The first one that is set is used.
 * Clients of the API family write the second one.
 */
export const providerTokenKeys = ['providerApiToken', 'openAiApiToken'] as const;
export type ProviderTokenKey = (typeof providerTokenKeys)[number];

export function isProviderTokenKey(key: string): key is ProviderTokenKey {
  return providerTokenKeys.some((one) => one === key);
}

/** Whether a provider's token has the form that a header takes: visible ASCII alone. */
export function isHeaderToken(value: string): boolean {
  return /^[\x21-\x7e]{1,4096}$/.test(value);
}

/** A value as a tenant set it: JSON text as it was written, or a string that is stored sealed. */
export type ConfigurationValue = { secured: false; json: string } | { secured: true; secret: string };

/** A value as the database stores it. */
export type StoredValue = { secured: false; json: string } | { secured: true; sealed: Uint8Array };

export interface ConfigurationItem {
  key: string;
  value: StoredValue;
  /** Counts up with every change, from 1. */
  version: number;
  description: string | undefined;
}

/** The item as answers and change entries show it: JSON text, in which numbers are as they were written. */
export function viewOf(item: ConfigurationItem, options: { maskValue?: boolean } = {}): string {
  const { key, value, version, description } = item;
  const shown = value.secured || options.maskValue === true ? JSON.stringify(mask) : value.json;
  const members = [
    `"key":${JSON.stringify(key)}`,
    `"value":${shown}`,
    `"version":${version}`,
    ...(description === undefined ? [] : [`"description":${JSON.stringify(description)}`]),
    `"secured":${value.secured}`,
  ];
  return `{${members.join(',')}}`;
}
