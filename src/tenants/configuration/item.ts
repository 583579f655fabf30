import { mask } from '../../core/sealing.ts';
import { isServerAddress } from '../../outbound/addresses.ts';

/**
 * The items with the tenant's own key for each provider, always secured. The first one that is set applies. Clients of
 * the API family use the first provider's second one.
 */
export const providerItems = {
  openai: ['providerApiToken', 'openAiApiToken'],
  anthropic: ['anthropicApiToken'],
  google: ['googleApiToken'],
  self_hosted: ['selfHostedProvider'],
} as const;

export const allProviderItems: readonly string[] = Object.values(providerItems).flat();

/** The tenant's own key for a provider. */
export interface ProviderKey {
  /** The configuration item that contains it. */
  readonly item: string;
  /** Empty for a server without a key. */
  readonly token: string;
  /** Of a server that the tenant names. */
  readonly baseUrl?: string;
}

/** Parses the secret of such an item. Undefined if malformed. */
export function readProviderKey(item: string, secret: string): ProviderKey | undefined {
  if (item !== 'selfHostedProvider') return isHeaderToken(secret) ? { item, token: secret } : undefined;
  const server = parsedServer(secret);
  if (server === undefined) return undefined;
  const { url, apiKey = '', ...unknown } = server;
  const isServer = isServerAddress(url) && (apiKey === '' || (typeof apiKey === 'string' && isHeaderToken(apiKey)));
  return isServer && Object.keys(unknown).length === 0 ? { item, token: apiKey, baseUrl: url } : undefined;
}

/** The fault of such an item's secret. */
export function faultOfProviderKey(item: string, secret: string): string | undefined {
  if (readProviderKey(item, secret) !== undefined) return undefined;
  return item === 'selfHostedProvider'
    ? 'must be an object, or its JSON text, with `url`, which begins with http:// or https:// without user, query and fragment, ' +
        'and `apiKey`, which may be left out'
    : 'must be 1 to 4096 visible ASCII characters without blanks';
}

function parsedServer(secret: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(secret);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a provider's token fits in a header: visible ASCII only. */
function isHeaderToken(value: string): boolean {
  return /^[\x21-\x7e]{1,4096}$/.test(value);
}

/** A value as a tenant set it: JSON text verbatim, or a string that is stored sealed. */
export type ConfigurationValue = { secured: false; json: string } | { secured: true; secret: string };

/** A value as stored. */
export type StoredValue = { secured: false; json: string } | { secured: true; sealed: Uint8Array };

export interface ConfigurationItem {
  key: string;
  value: StoredValue;
  /** Incremented with every change, from 1. */
  version: number;
  description: string | undefined;
}

/** The item as responses and change entries show it: JSON text with numbers verbatim. */
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
