import { randomUUID } from 'node:crypto';
import { AnnalsError, invalidBody } from '../../core/errors.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { type Author, recordDocumentChange } from '../../recording/record-document-change.ts';
import type { HistoryToDeliver } from '../changes.ts';
import type { Target, TargetMembers } from '../targets/target.ts';
import { foundSubscription, placeOf, targetOf } from './lookup.ts';
import { maxSubscriptions, type SubscriptionBody, type SubscriptionDocument } from './schemas.ts';
import { openSecrets, type SubscriptionSecrets, sealSecrets, takeSecrets } from './secrets.ts';
import {
  countSubscriptions,
  deleteSubscription,
  findSubscription,
  insertSubscription,
  lockState,
  lockSubscriptions,
  resumeSubscription,
  type StoredSubscription,
  stopSubscription,
  updateSubscription,
} from './store.ts';

/** Who writes a subscription. Its scopes count for as long as the subscription runs. */
export interface Maker extends Author {
  readonly clientId: string;
}

type Shown = Readonly<Record<string, string>>;

export interface SubscriptionWrites {
  /** Returns the id, and of keys what the maker is shown once. */
  create(maker: Maker, body: SubscriptionBody): Promise<{ id: string } & Shown>;
  /** The maker takes the subscription over. Throws resource_not_found. */
  replace(maker: Maker, id: string, body: SubscriptionBody): Promise<void>;
  remove(author: Author, id: string): Promise<void>;
  /** Makes a new key; the one before it signs beside it for 24 hours. */
  rotate(author: Author, id: string): Promise<Shown>;
}

/** What the functions that write and steer subscriptions need. */
export interface SubscriptionContext {
  readonly db: Database;
  readonly sealer: Sealer;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly history: HistoryToDeliver;
  readonly targets: readonly Target[];
}

/** The name of subscriptions in the change history. */
const entity = 'changelog-subscription';

/** Milliseconds in which the key before the newest signs as well. */
const overlap = 24 * 60 * 60 * 1000;

/** A write and its change entry are one transaction; how far a subscription is is no change. */
export function createSubscriptionWrites(context: SubscriptionContext): SubscriptionWrites {
  const { db, sealer, now, history, targets } = context;

  function refuseFaults(tenant: string, body: SubscriptionBody): void {
    history.checkQuery(body.q ?? '');
    const faults = targetOf(targets, body.target).check(tenant, body.target);
    if (faults.length > 0) throw invalidBody(...faults);
  }

  return {
    async create(maker, body) {
      const { tenant } = maker;
      const { id = randomUUID(), from = 'now', enabled = true } = body;
      refuseFaults(tenant, body);
      const target = targetOf(targets, body.target);
      const { shown, members } = takeSecrets(target, writable(body.target), undefined);
      const made = target.makeKey?.(body.target);
      const begin = await placeOf(history, tenant, 'from', from);
      const secrets: SubscriptionSecrets = { members, keys: made === undefined ? [] : [made.key] };
      await inTransaction(db, async (transaction) => {
        await lockSubscriptions(transaction, tenant);
        if ((await findSubscription(transaction, tenant, id)) !== undefined) throw alreadyThere();
        if ((await countSubscriptions(transaction, tenant)) >= maxSubscriptions) {
          throw new AnnalsError('validation_violation', `A tenant has at most ${maxSubscriptions} subscriptions.`);
        }
        const at = now();
        const times = { version: 1, createdAt: at, modifiedAt: at };
        const document = documentOf(
          { ...body, id, from, target: { ...shown, ...publicOf(made?.shown) } },
          target,
          times,
        );
        await insertSubscription(
          transaction,
          tenant,
          { id, version: 1, document, sealed: sealSecrets(sealer, tenant, id, secrets), maker: maker.clientId },
          { ...begin, cursor: history.cursorOf(tenant, begin), enabled },
        );
        await recordDocumentChange(transaction, maker, { entity, entityId: id, at, name: body.name, after: document });
      });
      return { id, ...made?.shown };
    },

    async replace(maker, id, body) {
      const { tenant } = maker;
      if (body.id !== undefined && body.id !== id)
        throw invalidBody({ field: 'id', message: 'must be that of the path' });
      refuseFaults(tenant, body);
      await inTransaction(db, async (transaction) => {
        await lockState(transaction, tenant, id);
        const { stored, document: before } = await foundSubscription(transaction, tenant, id);
        const sentVersion = body.metadata?.version;
        if (sentVersion !== undefined && sentVersion !== stored.version) throw oldVersion();
        refuseOther('target.type', before.target.type, body.target.type);
        if (body.from !== undefined) refuseOther('from', before.from, body.from);
        const target = targetOf(targets, body.target);
        const secrets = openSecrets(sealer, tenant, id, stored.sealed);
        const kept = takeSecrets(target, writable(body.target), { shown: before.target, secrets });
        // A target that is signed in another way needs another key, which only `rotate` shows.
        const { publicKey } = before.target;
        refuseOther('target.signing', before.target.signing ?? 'hmac', body.target.signing ?? 'hmac');
        const at = now();
        const version = stored.version + 1;
        const createdAt = Date.parse(before.metadata.createdAt);
        const document = documentOf(
          { ...body, id, from: before.from, target: { ...kept.shown, ...(publicKey !== undefined && { publicKey }) } },
          target,
          { version, createdAt, modifiedAt: Math.max(at, createdAt) },
        );
        const sealed = sealSecrets(sealer, tenant, id, { members: kept.members, keys: secrets.keys });
        await updateSubscription(transaction, tenant, { id, version, document, sealed, maker: maker.clientId });
        await setState(transaction, tenant, id, { stored, enabled: body.enabled ?? true });
        await recordDocumentChange(transaction, maker, {
          ...{ entity, entityId: id, at, name: body.name, before: stored.document, after: document },
          replacedSecrets: kept.replaced,
        });
      });
    },

    async remove(author, id) {
      const { tenant } = author;
      await inTransaction(db, async (transaction) => {
        const { stored, document } = await foundSubscription(transaction, tenant, id);
        await deleteSubscription(transaction, tenant, id);
        const change = { entity, entityId: id, at: now(), name: document.name, before: stored.document };
        await recordDocumentChange(transaction, author, change);
      });
    },

    async rotate(author, id) {
      const { tenant } = author;
      return await inTransaction(db, async (transaction) => {
        await lockState(transaction, tenant, id);
        const { stored, document: before } = await foundSubscription(transaction, tenant, id);
        const made = targetOf(targets, before.target).makeKey?.(before.target);
        if (made === undefined) throw new AnnalsError('conflict_resource', 'This target has no key of Annals.');
        const { members, keys } = openSecrets(sealer, tenant, id, stored.sealed);
        const at = now();
        const until = at + overlap;
        const ending = keys.slice(0, 1).map((key) => ({ ...key, until }));
        const version = stored.version + 1;
        const { createdAt } = before.metadata;
        const document = JSON.stringify({
          ...before,
          target: { ...before.target, ...publicOf(made.shown) },
          metadata: { version, createdAt, modifiedAt: new Date(Math.max(at, Date.parse(createdAt))).toISOString() },
        });
        const sealed = sealSecrets(sealer, tenant, id, { members, keys: [made.key, ...ending] });
        await updateSubscription(transaction, tenant, { id, version, document, sealed, maker: stored.maker });
        await recordDocumentChange(transaction, author, {
          ...{ entity, entityId: id, at, name: before.name, before: stored.document, after: document },
          replacedSecrets: ['target.secret'],
        });
        return made.shown;
      });
    },
  };
}

/** What becomes of the state when somebody writes the subscription. */
async function setState(
  transaction: DatabaseTransaction,
  tenant: string,
  id: string,
  { stored: { state, reason }, enabled }: { stored: StoredSubscription; enabled: boolean },
): Promise<void> {
  if (!enabled) {
    await stopSubscription(transaction, tenant, id, { state: 'paused', reason: 'disabled' });
  } else if (state === 'active' || state === 'retrying' || reason === 'disabled' || reason === 'maker') {
    await resumeSubscription(transaction, tenant, id);
  }
}

interface Times {
  readonly version: number;
  /** Milliseconds since 1970, as the other. */
  readonly createdAt: number;
  readonly modifiedAt: number;
}

/** The JSON text of a subscription as Annals stores it. */
function documentOf(
  { id, name, enabled = true, q = '', from = 'now', maxAge, hide, target }: SubscriptionBody & { readonly id: string },
  { maxAge: defaultMaxAge }: Target,
  { version, createdAt, modifiedAt }: Times,
): string {
  const age = maxAge ?? defaultMaxAge;
  const metadata = {
    version,
    createdAt: new Date(createdAt).toISOString(),
    modifiedAt: new Date(modifiedAt).toISOString(),
  };
  const document: SubscriptionDocument = {
    ...{ id, name, enabled, q, from },
    ...(age !== undefined && { maxAge: age }),
    ...(hide !== undefined && { hide }),
    target,
    metadata,
  };
  return JSON.stringify(document);
}

/** Without what answers show and nobody writes. */
function writable({ publicKey: _shown, ...target }: TargetMembers): TargetMembers {
  return target;
}

/** What of a new key everybody may see. */
function publicOf(shown: Shown | undefined): Shown {
  return shown?.publicKey === undefined ? {} : { publicKey: shown.publicKey };
}

function refuseOther(field: string, before: unknown, after: unknown): void {
  if (before !== after) throw invalidBody({ field, message: 'cannot be changed: make another subscription' });
}

function alreadyThere(): AnnalsError {
  return new AnnalsError('conflict_resource', 'There is a subscription with this id already.');
}

function oldVersion(): AnnalsError {
  return new AnnalsError('conflict_resource', 'The subscription has changed: its metadata.version is a different one.');
}
