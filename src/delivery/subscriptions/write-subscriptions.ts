import { randomUUID } from 'node:crypto';
import { AnnalsError, invalidBody } from '../../core/errors.ts';
import type { Sealer } from '../../core/sealing.ts';
import { shownActorsOf } from '../../core/written-restriction.ts';
import type { Author } from '../../http/credentials.ts';
import type { Scope } from '../../http/scopes.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { projectedJson } from '../../query/json-projection.ts';
import {
  metadataOf,
  ownDocuments,
  type Writing,
  type WrittenDocument,
} from '../../recording/documents/own-documents.ts';
import { type HistoryToDeliver, subscriptionEntity } from '../changes.ts';
import type { Target, TargetMembers } from '../targets/target.ts';
import { maxSubscriptions, type SubscriptionBody, type SubscriptionDocument } from './schemas.ts';
import { openSecrets, type SubscriptionSecrets, sealSecrets, splitSecrets } from './secrets.ts';
import {
  countSubscriptions,
  insertState,
  lockState,
  positionOfCursor,
  resumeSubscription,
  type SubscriptionColumns,
  stopSubscription,
  subscriptionNoun,
  subscriptionTable,
  targetOf,
} from './store.ts';

/** The client that writes a subscription and whose scopes it needs for as long as it runs. */
export interface Maker extends Author {
  readonly clientId: string;
  readonly scopes: readonly Scope[];
}

type Shown = Readonly<Record<string, string>>;

export interface SubscriptionWrites {
  /** Returns the id, and the members of a key that are shown once. */
  create(maker: Maker, body: SubscriptionBody): Promise<{ id: string } & Shown>;
  /** The maker takes the subscription over. Throws resource_not_found. */
  replace(maker: Maker, id: string, body: SubscriptionBody): Promise<void>;
  remove(author: Author, id: string): Promise<void>;
  /** Generates a new key. The previous key also signs for 24 hours. */
  rotate(author: Author, id: string): Promise<Shown>;
}

export interface SubscriptionContext {
  readonly db: Database;
  readonly sealer: Sealer;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly history: HistoryToDeliver;
  readonly targets: readonly Target[];
}

/** Milliseconds for which the previous key also signs. */
const overlap = 24 * 60 * 60 * 1000;

/** Records writes of subscriptions in the history, but not their progress. */
export function createSubscriptionWrites(context: SubscriptionContext): SubscriptionWrites {
  const { sealer, history, targets } = context;

  const subscriptions = ownDocuments<Sent, SubscriptionColumns>(context, {
    noun: subscriptionNoun,
    table: subscriptionTable,
    entity: subscriptionEntity,
    written: (sent, writing) => sent.written(writing),
    nameOf: (document) => (JSON.parse(document) as SubscriptionDocument).name,
  });

  function refuseFaults({ tenant, scopes }: Maker, body: SubscriptionBody): void {
    history.checkQuery(body.q ?? '', { actors: shownActorsOf(body.actors ?? true), scopes });
    const faults = targetOf(targets, body.target).check(tenant, body.target);
    if (faults.length > 0) throw invalidBody(...faults);
  }

  return {
    async create(maker, body) {
      const { tenant } = maker;
      const { id = randomUUID(), from = 'now', enabled = true } = body;
      refuseFaults(maker, body);
      const target = targetOf(targets, body.target);
      const { shown, members } = splitSecrets(target, writable(body.target), undefined);
      const made = target.makeKey?.(body.target);
      const begin = await positionOfCursor(history, tenant, 'from', from);
      const secrets: SubscriptionSecrets = { members, keys: made === undefined ? [] : [made.key] };
      await subscriptions.create(maker, id, {
        async written({ transaction, ...writing }) {
          const count = await countSubscriptions(transaction, tenant);
          const document: SubscriptionDocument = {
            ...contentOf({ ...body, id, from, target: { ...shown, ...publicOf(made?.shown) } }, target),
            metadata: metadataOf(writing),
          };
          return {
            ...writtenAs(document, { sealed: sealSecrets(sealer, tenant, id, secrets), maker: maker.clientId }),
            async also() {
              if (count >= maxSubscriptions) {
                throw new AnnalsError(
                  'validation_violation',
                  `A tenant has at most ${maxSubscriptions} subscriptions.`,
                );
              }
              const cursor = history.cursorOf(tenant, begin);
              await insertState(transaction, tenant, id, { ...begin, cursor, enabled });
            },
          };
        },
      });
      return { id, ...made?.shown };
    },

    async replace(maker, id, body) {
      const { tenant } = maker;
      if (body.id !== undefined && body.id !== id)
        throw invalidBody({ field: 'id', message: 'must be that of the path' });
      refuseFaults(maker, body);
      await subscriptions.replace(maker, id, (stored) => ({
        version: body.metadata?.version,
        written({ transaction, ...writing }) {
          const before = JSON.parse(stored.document) as SubscriptionDocument;
          refuseChange('target.type', before.target.type, body.target.type);
          if (body.from !== undefined) refuseChange('from', before.from, body.from);
          const target = targetOf(targets, body.target);
          const secrets = openSecrets(sealer, tenant, id, stored.sealed);
          const { shown, members, replaced } = splitSecrets(target, writable(body.target), {
            shown: before.target,
            secrets,
          });
          // Another signing method needs a new key, which only `rotate` returns.
          const { publicKey } = before.target;
          refuseChange('target.signing', before.target.signing ?? 'hmac', body.target.signing ?? 'hmac');
          const document: SubscriptionDocument = {
            ...contentOf({ ...body, id, from: before.from, target: { ...shown, ...publicOf({ publicKey }) } }, target),
            metadata: metadataOf(writing, before.metadata.createdAt),
          };
          const sealed = sealSecrets(sealer, tenant, id, { members, keys: secrets.keys });
          return {
            ...writtenAs(document, { sealed, maker: maker.clientId }),
            replacedSecrets: replaced,
            also: () => setState(transaction, tenant, id, document.enabled),
          };
        },
      }));
    },

    remove: subscriptions.remove,

    async rotate(author, id) {
      const { tenant } = author;
      let shown: Shown = {};
      await subscriptions.replace(author, id, (stored) => ({
        written(writing) {
          const before = JSON.parse(stored.document) as SubscriptionDocument;
          const made = targetOf(targets, before.target).makeKey?.(before.target);
          if (made === undefined) throw new AnnalsError('conflict_resource', 'This target has no key of Annals.');
          const { members, keys } = openSecrets(sealer, tenant, id, stored.sealed);
          const ending = keys.slice(0, 1).map((key) => ({ ...key, until: writing.now + overlap }));
          shown = made.shown;
          const document: SubscriptionDocument = {
            ...before,
            target: { ...before.target, ...publicOf(made.shown) },
            metadata: metadataOf(writing, before.metadata.createdAt),
          };
          const sealed = sealSecrets(sealer, tenant, id, { members, keys: [made.key, ...ending] });
          return { ...writtenAs(document, { sealed, maker: stored.maker }), replacedSecrets: ['target.secret'] };
        },
      }));
      return shown;
    },
  };
}

/** A write that becomes the stored subscription. */
interface Sent {
  readonly version?: number | undefined;
  written(writing: Writing): Written | Promise<Written>;
}

type Written = WrittenDocument<SubscriptionColumns>;

function writtenAs(document: SubscriptionDocument, columns: SubscriptionColumns): Written {
  const text = JSON.stringify(document);
  return { row: { document: text, fields: projectedJson(text), ...columns }, name: document.name };
}

/** Updates the state after a write of the subscription. */
async function setState(transaction: DatabaseTransaction, tenant: string, id: string, enabled: boolean): Promise<void> {
  const { state, reason } = (await lockState(transaction, tenant, id)) ?? {};
  if (!enabled) {
    await stopSubscription(transaction, tenant, id, { state: 'paused', reason: 'disabled' });
  } else if (state === 'active' || state === 'retrying' || reason === 'disabled' || reason === 'maker') {
    await resumeSubscription(transaction, tenant, id);
  }
}

/** The stored document without its metadata. */
function contentOf(
  {
    id,
    name,
    enabled = true,
    q = '',
    from = 'now',
    maxAge,
    hide,
    actors,
    target,
  }: SubscriptionBody & { readonly id: string },
  { maxAge: defaultMaxAge, defaults }: Target,
): Omit<SubscriptionDocument, 'metadata'> {
  const age = maxAge ?? defaultMaxAge;
  const { type, ...members } = target;
  return {
    ...{ id, name, enabled, q, from },
    ...(age !== undefined && { maxAge: age }),
    ...(hide !== undefined && { hide }),
    ...(actors !== undefined && { actors: shownActorsOf(actors) }),
    target: { type, ...defaults, ...members },
  };
}

/** Drops the read-only members. */
function writable({ publicKey: _shown, ...target }: TargetMembers): TargetMembers {
  return target;
}

/** The public part of a new key. */
function publicOf(shown: { readonly publicKey?: unknown } | undefined): { publicKey?: unknown } {
  return shown?.publicKey === undefined ? {} : { publicKey: shown.publicKey };
}

function refuseChange(field: string, before: unknown, after: unknown): void {
  if (before !== after) throw invalidBody({ field, message: 'cannot be changed: make another subscription' });
}
