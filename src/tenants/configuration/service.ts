import { AnnalsError, invalidBody } from '../../core/errors.ts';
import { refuseLargeDocument } from '../../core/json/size.ts';
import { mask } from '../../core/mask.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { Author } from '../../http/credentials.ts';
import { type PageTexts, textsOfPage } from '../../pagination/page-texts.ts';
import { maxPieceBytes } from '../../pagination/pieces.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import type { Statements } from '../../postgres/statements.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { refusedAddress } from '../../providers/guarded-lookup.ts';
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
import { keysReadAnew, readForAll } from './known-keys.ts';
import { openSecret, sealSecret } from './secrets.ts';
import type { SentValue } from './sent-values.ts';
import { deleteItem, insertItems, listItems, readItem, readItems, readSealedValues, updateItem } from './store.ts';

/** An item as a client sends it: `value` is parsed, `json` and `size` are those of its text. */
export interface SentItem extends SentValue {
  value: unknown;
  version?: number | undefined;
  description?: string | undefined;
  secured?: boolean | undefined;
}

/** What a tenant has set (contract: configuration). Everything takes the tenant first. */
export interface Configuration {
  /** The items as JSON texts, by key: all of them, or those of the keys that are there. */
  list(tenant: string, keys: readonly string[] | undefined): Promise<PageTexts>;
  find(tenant: string, key: string): Promise<ConfigurationItem>;
  create(author: Author, items: readonly (SentItem & { key: string })[]): Promise<ConfigurationItem[]>;
  replace(author: Author, key: string, item: SentItem): Promise<ConfigurationItem>;
  remove(author: Author, key: string): Promise<void>;
  /** The value in the clear, for the modules that need it; undefined where it is not set. */
  read(tenant: string, key: string): Promise<ConfigurationValue | undefined>;
  /** The tenant's own keys, by provider; those that it has. A change of them that was answered before is among them. */
  readProviderKeys(tenant: string): Promise<ProviderKeys>;
}

export type ProviderKeys = Partial<Record<keyof typeof providerItems, OwnKey>>;

/** A tenant's own key, and whether its budgets may apply to a call with it: whether it had any when the key was read. */
export interface OwnKey extends ProviderKey {
  readonly hasBudgets: boolean;
}

export function createConfiguration(options: {
  pool: Statements;
  db: Database;
  sealer: Sealer;
  now: () => number;
  /** Whether the `url` of `selfHostedProvider` has an address that can never be called. */
  refusesAddress: (url: string) => boolean;
}): Configuration {
  const { pool, db, sealer, now } = options;
  async function readProviderKeys(tenant: string): Promise<ProviderKeys> {
    const values = await readSealedValues(pool, tenant, allProviderItems);
    const keyOf = (item: string): OwnKey | undefined => {
      const value = values.get(item);
      // What was stored before the item was always secured may be no key.
      const key = value && readProviderKey(item, openSecret(sealer, tenant, item, value.sealed));
      return key && { ...key, hasBudgets: value.hasBudgets };
    };
    return Object.fromEntries(
      Object.entries(providerItems).flatMap(([provider, items]) => {
        const key = items.map(keyOf).find((one) => one !== undefined);
        return key === undefined ? [] : [[provider, key]];
      }),
    );
  }

  /** Before a change is answered. */
  async function changed(...keys: string[]): Promise<void> {
    if (keys.some((key) => allProviderItems.includes(key))) await keysReadAnew();
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
      const readTexts = async (some: readonly string[]) =>
        new Map((await readItems(db, tenant, some)).map((item) => [item.key, [viewOf(item)]]));
      return textsOfPage(rows, readTexts);
    },

    async find(tenant, key) {
      const item = await readItem(db, tenant, key);
      if (item === undefined) throw notThere();
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
        if (inserted.size < items.length) throw alreadyThere(items, inserted);
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
        if (before === undefined) throw invalidBody({ field: 'key', message: 'is not there yet; POST makes it' });
        if (sent.version !== undefined && sent.version !== before.version) throw changedMeanwhile(before.version);
        // The client has sent back the mask that an answer showed, so the secret stays. If it leaves out `secured`,
        // that stays as well.
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
        if (before === undefined) throw notThere();
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

/** Checks what a client sent. `place` begins the names of the fields in details. Throws payload_too_large (contract 11). */
function checkedValue(key: string, { json, size, value, secured }: SentItem, place: string): ConfigurationValue {
  refuseLargeDocument('A configuration value', size);
  if (secured !== true && !allProviderItems.includes(key)) return { secured: false, json };
  const secret = key === 'selfHostedProvider' && typeof value === 'object' ? json : value;
  const fault = faultOfSecret(key, secret);
  if (fault !== undefined) throw invalidBody({ field: `${place}value`, message: fault });
  return { secured: true, secret: String(secret) };
}

/** Nobody may read the secret, so it cannot become a value that everybody reads, and the mask would take its place. */
const noLongerSecured = 'must be given anew where it is no longer secured: this is the mask that answers show';

function faultOfSecret(key: string, value: unknown): string | undefined {
  if (typeof value !== 'string') return 'must be a string, because it is secured';
  if (!value.isWellFormed()) return 'must not contain lone surrogates';
  if (value === mask) return 'must be the secret itself: this is the mask that answers show';
  return allProviderItems.includes(key) ? faultOfProviderKey(key, value) : undefined;
}

function refuseRepeatedKeys(items: readonly ConfigurationItem[]): void {
  const seen = new Set<string>();
  for (const [index, { key }] of items.entries()) {
    if (seen.has(key)) throw invalidBody({ field: `${index}.key`, message: 'must not be given twice' });
    seen.add(key);
  }
}

function notThere(): AnnalsError {
  return new AnnalsError('resource_not_found', 'There is no configuration with this key.');
}

function alreadyThere(items: readonly ConfigurationItem[], inserted: ReadonlySet<string>): AnnalsError {
  const details = [...items.entries()]
    .filter(([, { key }]) => !inserted.has(key))
    .map(([index]) => ({ field: `${index}.key`, message: 'exists already' }));
  return new AnnalsError('conflict_resource', 'A configuration exists already; none was stored.', { details });
}

function changedMeanwhile(version: number): AnnalsError {
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

/** Records what became of an item, in the transaction that changes it. */
async function recordItemChange(
  transaction: DatabaseTransaction,
  author: Author,
  { before, after, at }: ItemChange,
): Promise<void> {
  // A value that was in the clear and becomes a secret is masked too: it may be the same string.
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
