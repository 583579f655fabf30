import { mask } from '../recording/mask.ts';

/** The key of the tenant's own token for the first provider. It is always secured. */
export const providerApiTokenKey = 'providerApiToken';

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
