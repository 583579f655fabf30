import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { AnnalsError, invalidBody } from '../../core/errors.ts';
import { SharedReading } from '../../core/fairness/shared-work.ts';
import { refuseLargeDocument } from '../../core/json/measure.ts';
import { mask, type Sealer } from '../../core/sealing.ts';
import type { Author } from '../../http/credentials.ts';
import { refusedAddress } from '../../outbound/addresses.ts';
import { type PageTexts, textsOfPage } from '../../pagination/page-texts.ts';
import { maxPieceBytes } from '../../pagination/pieces.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import type { Statements } from '../../postgres/statements.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { recordDocumentChange } from '../../recording/record-document-change.ts';
import {
  allProviderItems,
  type ConfigurationItem,
  type ConfigurationValue,
  faultOfProviderKey,
  type ProviderKey,
  providerItems,
  readProviderKey,
  type StoredValue,
  viewOf,
} from './item.ts';
import { openSecret, sealSecret } from './secrets.ts';
import type { SentValue } from './sent-values.ts';
import { deleteItem, insertItems, listItems, readItem, readItems, readSealedValues, updateItem } from './store.ts';

/** An item in a request: `value` is parsed; `json` and `size` are those of its text. */
export interface SentItem extends SentValue {
  value: unknown;
  version?: number | undefined;
  description?: string | undefined;
  secured?: boolean | undefined;
}

/** The configuration of tenants (contract: configuration). Every method takes the tenant first. */
export interface Configuration {
  /** The items as JSON texts, by key: all, or the existing ones of these keys. */
  list(tenant: string, keys: readonly string[] | undefined): Promise<PageTexts>;
  find(tenant: string, key: string): Promise<ConfigurationItem>;
  create(author: Author, items: readonly (SentItem & { key: string })[]): Promise<ConfigurationItem[]>;
  replace(author: Author, key: string, item: SentItem): Promise<ConfigurationItem>;
  remove(author: Author, key: string): Promise<void>;
  /** The value in clear text for other modules; undefined where it is not set. */
  read(tenant: string, key: string): Promise<ConfigurationValue | undefined>;
  /** The tenant's own keys by provider. Includes every change that was answered before. */
  readProviderKeys(tenant: string): Promise<ProviderKeys>;
}

export type ProviderKeys = Partial<Record<keyof typeof providerItems, OwnKey>>;

/** A tenant's own key, and whether the tenant had budgets when it was read. */
export interface OwnKey extends ProviderKey {
  readonly hasBudgets: boolean;
}

export function createConfiguration(options: {
  pool: Statements;
  db: Database;
  sealer: Sealer;
  now: () => number;
  /** Whether the `url` of `selfHostedProvider` has an address that is always refused. */
  refusesAddress: (url: string) => boolean;
}): Configuration {
  const { pool, db, sealer, now } = options;
  async function readProviderKeys(tenant: string): Promise<ProviderKeys> {
    const values = await readSealedValues(pool, tenant, allProviderItems);
    const keyOf = (item: string): OwnKey | undefined => {
      const value = values.get(item);
      // Values from before the item was always secured may be malformed.
      const key = value && readProviderKey(item, openSecret(sealer, tenant, item, value.sealed));
      return key && { ...key, hasBudgets: value.hasBudgets };
    };
    return Object.fromEntries(
      Object.entries(providerItems).flatMap(([provider, items]) => {
        const key = items.map(keyOf).find((found) => found !== undefined);
        return key === undefined ? [] : [[provider, key]];
      }),
    );
  }

  /** Runs before a change is answered. */
  async function changed(...keys: string[]): Promise<void> {
    if (keys.some((key) => allProviderItems.includes(key))) await keyCachesExpired();
  }

  function stored(tenant: string, key: string, value: ConfigurationValue, place: string): StoredValue {
    const url = value.secured ? readProviderKey(key, value.secret)?.baseUrl : undefined;
    if (url !== undefined && options.refusesAddress(url))
      throw invalidBody({ field: `${place}value`, message: `\`url\` ${refusedAddress}` });
    return value.secured ? { secured: true, sealed: sealSecret(sealer, tenant, key, value.secret) } : value;
  }

  return {
    async list(tenant, keys) {
      const listed = await listItems(db, tenant, keys, maxPieceBytes);
      const rows = listed.map(({ key, bytes, item }) => ({ id: key, bytes, text: item && viewOf(item) }));
      const readTexts = async (missing: readonly string[]) =>
        new Map((await readItems(db, tenant, missing)).map((item) => [item.key, [viewOf(item)]]));
      return textsOfPage(rows, readTexts);
    },

    async find(tenant, key) {
      const item = await readItem(db, tenant, key);
      if (item === undefined) throw notFound();
      return item;
    },

    async create(author, sent) {
      const { tenant } = author;
      const items = sent.map((item, index): ConfigurationItem => {
        const value = stored(tenant, item.key, checkedValue(item.key, item, `${index}.`), `${index}.`);
        return { key: item.key, value, version: 1, description: item.description };
      });
      refuseRepeatedKeys(items);
      await inTransaction(db, async (transaction) => {
        const inserted = new Set(await insertItems(transaction, tenant, items));
        if (inserted.size < items.length) throw alreadyExists(items, inserted);
        const at = now();
        for (const item of items) await recordItemChange(transaction, author, { after: item, at });
      });
      await changed(...items.map(({ key }) => key));
      return items;
    },

    async replace(author, key, sent) {
      const { tenant } = author;
      const replaced = await inTransaction(db, async (transaction) => {
        const before = await readItem(transaction, tenant, key, { lock: true });
        if (before === undefined) throw invalidBody({ field: 'key', message: 'does not exist; create it with POST' });
        if (sent.version !== undefined && sent.version !== before.version) throw versionConflict(before.version);
        // The client sent the mask back, so the secret stays, as does `secured` if it is left out.
        const secured = allProviderItems.includes(key) || (sent.secured ?? before.value.secured);
        const isMaskOfSecret = before.value.secured && sent.value === mask;
        if (isMaskOfSecret && !secured) throw invalidBody({ field: 'value', message: noLongerSecured });
        const keepsSecret = isMaskOfSecret && secured;
        const value = keepsSecret ? before.value : stored(tenant, key, checkedValue(key, { ...sent, secured }, ''), '');
        const after = { key, value, version: before.version + 1, description: sent.description };
        await updateItem(transaction, tenant, after);
        await recordItemChange(transaction, author, { before, after, at: now() });
        return after;
      });
      await changed(key);
      return replaced;
    },

    async remove(author, key) {
      await inTransaction(db, async (transaction) => {
        const before = await deleteItem(transaction, author.tenant, key);
        if (before === undefined) throw notFound();
        await recordItemChange(transaction, author, { before, at: now() });
      });
      await changed(key);
    },

    async read(tenant, key) {
      const value = (await readItem(db, tenant, key))?.value;
      if (value === undefined || !value.secured) return value;
      return { secured: true, secret: openSecret(sealer, tenant, key, value.sealed) };
    },

    readProviderKeys: readForAll(readProviderKeys),
  };
}

/** Checks a value of a request. `place` prefixes the field names in details. Throws payload_too_large (contract 11). */
function checkedValue(key: string, { json, size, value, secured }: SentItem, place: string): ConfigurationValue {
  refuseLargeDocument('A configuration value', size);
  if (secured !== true && !allProviderItems.includes(key)) return { secured: false, json };
  const secret = key === 'selfHostedProvider' && typeof value === 'object' ? json : value;
  const fault = faultOfSecret(key, secret);
  if (fault !== undefined) throw invalidBody({ field: `${place}value`, message: fault });
  return { secured: true, secret: String(secret) };
}

/** A secret may not become readable, and otherwise the mask would replace it. */
const noLongerSecured = 'must be re-entered where it is no longer secured: this is the mask that responses show';

function faultOfSecret(key: string, value: unknown): string | undefined {
  if (typeof value !== 'string') return 'must be a string, because it is secured';
  if (!value.isWellFormed()) return 'must not contain lone surrogates';
  if (value === mask) return 'must be the secret itself: this is the mask that responses show';
  return allProviderItems.includes(key) ? faultOfProviderKey(key, value) : undefined;
}

function refuseRepeatedKeys(items: readonly ConfigurationItem[]): void {
  const seen = new Set<string>();
  for (const [index, { key }] of items.entries()) {
    if (seen.has(key)) throw invalidBody({ field: `${index}.key`, message: 'must not be repeated' });
    seen.add(key);
  }
}

function notFound(): AnnalsError {
  return new AnnalsError('resource_not_found', 'There is no configuration with this key.');
}

function alreadyExists(items: readonly ConfigurationItem[], inserted: ReadonlySet<string>): AnnalsError {
  const details = [...items.entries()]
    .filter(([, { key }]) => !inserted.has(key))
    .map(([index]) => ({ field: `${index}.key`, message: 'exists already' }));
  return new AnnalsError('conflict_resource', 'A configuration exists already; none was stored.', { details });
}

function versionConflict(version: number): AnnalsError {
  return new AnnalsError('conflict_resource', 'The configuration has another version.', {
    details: [{ field: 'version', message: `must be ${version}` }],
  });
}

interface ItemChange {
  readonly before?: ConfigurationItem;
  readonly after?: ConfigurationItem;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** Records a change of an item in the transaction that makes it. */
async function recordItemChange(
  transaction: DatabaseTransaction,
  author: Author,
  { before, after, at }: ItemChange,
): Promise<void> {
  // A clear value that becomes a secret is masked too: it may be the same string.
  const maskValue = after?.value.secured === true;
  const isReplaced = maskValue && before !== undefined && before.value !== after.value;
  await recordDocumentChange(transaction, author, {
    entity: 'configuration',
    entityId: (after ?? before)?.key ?? '',
    at,
    before: before && viewOf(before, { maskValue }),
    after: after && viewOf(after),
    replacedSecrets: isReplaced ? ['value'] : [],
  });
}

/**
 * Milliseconds for which a tenant's keys and budgets are cached. A change of them is answered after that time, so that
 * a call that begins later never uses old ones, in any process.
 */
const keyCacheTime = 50;

/** Covers early timers and clock drift between machines. */
const keyCacheMargin = 10;

const maxCachedTenants = 10_000;

/** Resolves when every new call uses the current keys and budgets. Await it after committing a change of them. */
export async function keyCachesExpired(): Promise<void> {
  await sleep(keyCacheTime + keyCacheMargin);
}

/** Shares one read among all calls of a tenant that begin within the cache time. */
function readForAll<Keys>(read: (tenant: string) => Promise<Keys>): (tenant: string) => Promise<Keys> {
  const cache = new LRUCache<string, SharedReading<Keys>>({
    max: maxCachedTenants,
    ttl: keyCacheTime,
    ttlResolution: 0,
  });

  function begin(tenant: string): SharedReading<Keys> {
    const reading = new SharedReading({ tenant, writes: true }, () => read(tenant));
    cache.set(tenant, reading);
    return reading;
  }

  return async (tenant) => {
    const cached = cache.get(tenant);
    const reading = cached === undefined || cached.isLost ? begin(tenant) : cached;
    return await reading.result();
  };
}

/** The recipient of e-mails to the tenant (contract: auto-disable). */
const notificationEmailKey = 'notificationEmail';

/** Characters of JSON text. An address has at most 254 characters, each at most six in JSON. */
const maxAddressText = 2_000;

/** The address; undefined where the value is missing or not an e-mail address. */
export async function readNotificationEmail(
  configuration: Pick<Configuration, 'read'>,
  tenant: string,
): Promise<string | undefined> {
  const value = await configuration.read(tenant, notificationEmailKey);
  if (value === undefined) return undefined;
  // Longer than any address, so it is not parsed.
  if (!value.secured && value.json.length > maxAddressText) return undefined;
  const address: unknown = value.secured ? value.secret : JSON.parse(value.json);
  if (typeof address !== 'string') return undefined;
  const trimmed = address.trim();
  return trimmed.length <= 254 && /^[^\s@<>()[\],;:"\\]+@[^\s@<>()[\],;:"\\]+$/.test(trimmed) ? trimmed : undefined;
}
