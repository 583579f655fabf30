import { randomUUID } from 'node:crypto';
import { Semaphore } from '../../core/concurrency/semaphore.ts';
import { currentWork } from '../../core/concurrency/work.ts';
import { AnnalsError, invalidBody } from '../../core/errors.ts';
import type { Sealer } from '../../core/sealing.ts';
import { Stop } from '../../core/stop-signal.ts';
import type { AskedOfList, DocumentLists } from '../../pagination/document-lists.ts';
import type { Page, PageWanted } from '../../pagination/paginator.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { parseInstant } from '../../query/instant.ts';
import { type Author, recordDocumentChange } from '../../recording/record-document-change.ts';
import type { HistoryToDeliver, Reading, ReadingPosition } from '../changes.ts';
import { testPlaces } from '../places.ts';
import type { DeliveryResult, Target, TargetMembers } from '../targets/target.ts';
import {
  maxSubscriptions,
  mayBeId,
  type ReplayBody,
  type SubscriptionBody,
  type SubscriptionDocument,
} from './schemas.ts';
import { openSecrets, type SubscriptionSecrets, sealSecrets, takeSecrets, withSecrets } from './secrets.ts';
import {
  attemptRows,
  countSubscriptions,
  deleteSubscription,
  dropKept,
  dropParked,
  findShown,
  findSubscription,
  insertReplay,
  insertSubscription,
  lockState,
  lockSubscriptions,
  makeDue,
  noteAttempts,
  resumeSubscription,
  type StoredSubscription,
  stopSubscription,
  subscriptionRows,
  unpark,
  updateSubscription,
} from './store.ts';

/** Who writes a subscription. Its scopes count for as long as the subscription runs. */
export interface Maker extends Author {
  readonly clientId: string;
}

type Shown = Readonly<Record<string, string>>;

/** What a tenant wants to have sent. Documents go out as JSON texts. */
export interface Subscriptions {
  find(tenant: string, id: string): Promise<string>;
  list(tenant: string, asked: AskedOfList, wanted: PageWanted): Promise<Page>;
  /** Returns the id, and of keys what the maker is shown once. */
  create(maker: Maker, body: SubscriptionBody): Promise<{ id: string } & Shown>;
  /** The maker takes the subscription over. Throws resource_not_found. */
  replace(maker: Maker, id: string, body: SubscriptionBody): Promise<void>;
  remove(author: Author, id: string): Promise<void>;
  test(tenant: string, id: string): Promise<DeliveryResult>;
  pause(tenant: string, id: string): Promise<void>;
  /** `from`: where it goes on if its place was lost. */
  resume(tenant: string, id: string, from?: string): Promise<void>;
  replay(tenant: string, id: string, asked: ReplayBody): Promise<void>;
  /** Makes a new key; the one before it signs beside it for 24 hours. */
  rotate(author: Author, id: string): Promise<Shown>;
  dropParked(tenant: string, id: string): Promise<void>;
  attempts(tenant: string, id: string, asked: AskedOfList, wanted: PageWanted): Promise<Page>;
  /** What would have matched, from a day ago or behind a cursor. */
  preview(tenant: string, id: string, asked: { after?: string | undefined; limit: number }): Promise<Reading>;
}

export interface SubscriptionsOptions {
  db: Database;
  documents: DocumentLists;
  sealer: Sealer;
  now: () => number;
  history: HistoryToDeliver;
  targets: readonly Target[];
}

/** The name of subscriptions in the change history. */
const entity = 'changelog-subscription';

/** Milliseconds. */
const day = 24 * 60 * 60 * 1000;

/** Subscriptions. A write and its change entry are one transaction; how far a subscription is is no change. */
export function createSubscriptions(options: SubscriptionsOptions): Subscriptions {
  const { db, documents, sealer, now, history, targets } = options;
  const tests = new Semaphore({ ...testPlaces, maxWaitingOfTenant: 0, name: 'tests of subscriptions' });

  function targetOf({ type }: { readonly type: string }): Target {
    const target = targets.find((one) => one.type === type);
    if (target === undefined) throw new Error(`there is no target ${type}`);
    return target;
  }

  function refuseFaults(tenant: string, body: SubscriptionBody): void {
    history.checkQuery(body.q ?? '');
    const faults = targetOf(body.target).check(tenant, body.target);
    if (faults.length > 0) throw invalidBody(...faults);
  }

  async function found(connection: Database | DatabaseTransaction, tenant: string, id: string) {
    const stored = mayBeId(id) ? await findSubscription(connection, tenant, id) : undefined;
    if (stored === undefined) throw notFound();
    return { stored, document: JSON.parse(stored.document) as SubscriptionDocument };
  }

  /** Does something with a subscription that is there, while no run of it settles. */
  async function withState(
    tenant: string,
    id: string,
    work: (transaction: DatabaseTransaction, stored: StoredSubscription) => Promise<void>,
  ): Promise<void> {
    await inTransaction(db, async (transaction) => {
      await lockState(transaction, tenant, id);
      await work(transaction, (await found(transaction, tenant, id)).stored);
    });
  }

  async function momentOf(tenant: string, field: string, text: string): Promise<ReadingPosition> {
    const instant = parseInstant(text);
    if (typeof instant !== 'string') return await history.positionAt(tenant, instant.millisecond);
    return await placeOf(tenant, field, text);
  }

  async function placeOf(tenant: string, field: string, text: string): Promise<ReadingPosition> {
    try {
      return await history.positionOf(tenant, text);
    } catch (error) {
      if (!(error instanceof AnnalsError) || error.type !== 'validation_violation') throw error;
      throw invalidBody({ field, message: 'is not a cursor of the feed of this tenant' });
    }
  }

  async function refuseUnknown(tenant: string, id: string): Promise<void> {
    await found(db, tenant, id);
  }

  return {
    async find(tenant, id) {
      const document = mayBeId(id) ? await findShown(db, tenant, id) : undefined;
      if (document === undefined) throw notFound();
      return document;
    },

    list: (tenant, asked, wanted) => documents.page(subscriptionRows(tenant), asked, wanted),

    async create(maker, body) {
      const { tenant } = maker;
      const { id = randomUUID(), from = 'now', enabled = true } = body;
      refuseFaults(tenant, body);
      const target = targetOf(body.target);
      const { shown, members } = takeSecrets(target, writable(body.target), undefined);
      const made = target.makeKey?.(body.target);
      const begin = await placeOf(tenant, 'from', from);
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
        const { stored, document: before } = await found(transaction, tenant, id);
        const sentVersion = body.metadata?.version;
        if (sentVersion !== undefined && sentVersion !== stored.version) throw oldVersion();
        refuseOther('target.type', before.target.type, body.target.type);
        if (body.from !== undefined) refuseOther('from', before.from, body.from);
        const target = targetOf(body.target);
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
        const { stored, document } = await found(transaction, tenant, id);
        await deleteSubscription(transaction, tenant, id);
        const change = { entity, entityId: id, at: now(), name: document.name, before: stored.document };
        await recordDocumentChange(transaction, author, change);
      });
    },

    async test(tenant, id) {
      const { stored, document } = await found(db, tenant, id);
      const secrets = openSecrets(sealer, tenant, id, stored.sealed);
      const sending = {
        tenant,
        subscription: id,
        target: withSecrets(document.target, secrets),
        keys: secrets.keys,
        hide: document.hide ?? [],
        signal: currentWork()?.signal ?? new Stop(),
      };
      const at = now();
      const result = await tests.use(tenant, sending.signal, () => targetOf(document.target).test(sending));
      await inTransaction(db, (transaction) => noteAttempts(transaction, tenant, id, [{ kind: 'test', at, result }]));
      return result;
    },

    async pause(tenant, id) {
      await withState(tenant, id, async (transaction, { state, reason }) => {
        // Who is not enabled, or suspended, stays what it is: to go on takes more than to resume.
        if (state === 'suspended' || reason === 'disabled') return;
        await stopSubscription(transaction, tenant, id, { state: 'paused', reason: 'client' });
      });
    },

    async resume(tenant, id, from) {
      const place = from === undefined ? undefined : await placeOf(tenant, 'from', from);
      await withState(tenant, id, async (transaction, { reason }) => {
        if (reason === 'disabled') {
          throw new AnnalsError('conflict_resource', 'The subscription is not enabled: set `enabled` to true.');
        }
        if (reason === 'maker') {
          throw new AnnalsError(
            'conflict_resource',
            'The client that made the subscription may not any more. Another client can take it over with PUT.',
          );
        }
        if (reason === 'restored' && place === undefined) {
          throw new AnnalsError(
            'conflict_resource',
            'The database was restored, and the place of the subscription is lost: say `from` where it goes on.',
          );
        }
        if (reason !== 'restored' && place !== undefined) {
          throw invalidBody({ field: 'from', message: 'is only for a subscription whose place was lost' });
        }
        if (place !== undefined) await dropKept(transaction, tenant, id);
        const at = place && { ...place, cursor: history.cursorOf(tenant, place) };
        await resumeSubscription(transaction, tenant, id, at);
      });
    },

    async replay(tenant, id, { from, to, parked }) {
      const { document } = await found(db, tenant, id);
      if (targetOf(document.target).isReplayed === false) {
        throw new AnnalsError('conflict_resource', 'An alert sends nothing once more.');
      }
      if (parked === true) {
        if (from !== undefined || to !== undefined) {
          throw invalidBody({ field: 'parked', message: 'goes without from and to' });
        }
        await withState(tenant, id, (transaction) => unpark(transaction, tenant, id));
        return;
      }
      if (from === undefined) throw invalidBody({ field: 'from', message: 'is required, or parked' });
      const begin = await momentOf(tenant, 'from', from);
      const { position: until } = await momentOf(tenant, 'to', to ?? 'now');
      if (until <= begin.position) return;
      await withState(tenant, id, async (transaction) => {
        if (!(await insertReplay(transaction, tenant, id, { ...begin, until }))) {
          throw new AnnalsError(
            'conflict_resource',
            'A replay of this subscription is on its way: there is one at a time.',
          );
        }
        await makeDue(transaction, tenant, id);
      });
    },

    async rotate(author, id) {
      const { tenant } = author;
      return await inTransaction(db, async (transaction) => {
        await lockState(transaction, tenant, id);
        const { stored, document: before } = await found(transaction, tenant, id);
        const made = targetOf(before.target).makeKey?.(before.target);
        if (made === undefined) throw new AnnalsError('conflict_resource', 'This target has no key of Annals.');
        const { members, keys } = openSecrets(sealer, tenant, id, stored.sealed);
        const at = now();
        const until = at + day;
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

    async dropParked(tenant, id) {
      await withState(tenant, id, (transaction) => dropParked(transaction, tenant, id));
    },

    async attempts(tenant, id, asked, wanted) {
      await refuseUnknown(tenant, id);
      return await documents.page(attemptRows(tenant, id), asked, wanted);
    },

    async preview(tenant, id, { after, limit }) {
      const { document } = await found(db, tenant, id);
      const begin =
        after === undefined ? await history.positionAt(tenant, now() - day) : await history.positionOf(tenant, after);
      return await history.readMatches(tenant, { q: document.q, after: begin, maxItems: limit });
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

function notFound(): AnnalsError {
  return new AnnalsError('resource_not_found', 'There is no such subscription.');
}

function alreadyThere(): AnnalsError {
  return new AnnalsError('conflict_resource', 'There is a subscription with this id already.');
}

function oldVersion(): AnnalsError {
  return new AnnalsError('conflict_resource', 'The subscription has changed: its metadata.version is a different one.');
}
