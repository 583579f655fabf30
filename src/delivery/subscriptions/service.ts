import { AnnalsError } from '../../core/errors.ts';
import type { ShownActors } from '../../core/written-restriction.ts';
import { faultOfChosenId } from '../../http/chosen-id.ts';
import type { Scope } from '../../http/scopes.ts';
import type { DocumentLists, ListParameters, Page, PageRequest } from '../../pagination/paginator.ts';
import { notFound } from '../../recording/documents/own-documents.ts';
import { type DeliveredChange, type Reading, withoutOwnCreation } from '../changes.ts';
import type { ShownRequest } from '../targets/target.ts';
import { attemptRows, findAttempt } from './attempt-store.ts';
import { createControls, type SubscriptionControls } from './control-subscriptions.ts';
import { findShown, requireSubscription, subscriptionNoun, subscriptionRows, targetOf } from './store.ts';
import { createSubscriptionWrites, type SubscriptionContext, type SubscriptionWrites } from './write-subscriptions.ts';

/** The subscriptions of tenants. Documents are returned as JSON texts. */
export interface Subscriptions extends SubscriptionWrites, SubscriptionControls {
  find(tenant: string, id: string): Promise<string>;
  list(tenant: string, query: ListParameters, options: PageRequest): Promise<Page>;
  attempts(tenant: string, id: string, query: ListParameters, options: PageRequest): Promise<Page>;
  /**
   * What an attempt of a webhook sent, rebuilt from the history with today's masks, erasures and settings: it is never
   * stored. Throws resource_not_found if the change is no longer kept, conflict_resource for another kind of target.
   */
  sentRequest(tenant: string, id: string, attempt: number, reader: { scopes: readonly Scope[] }): Promise<ShownRequest>;
  /** The changes that match, since a day ago or after a cursor. */
  preview(tenant: string, id: string, query: PreviewRequest): Promise<Reading>;
}

interface PreviewRequest {
  readonly after?: string | undefined;
  readonly limit: number;
  /** Of the reader. */
  readonly scopes: readonly Scope[];
}

/** Milliseconds between the clocks of two processes. */
const maxSkew = 60_000;
/** Milliseconds. */
const day = 24 * 60 * 60 * 1000;

export function createSubscriptions(context: SubscriptionContext & { documents: DocumentLists }): Subscriptions {
  const { db, documents, now, history, targets } = context;

  async function changeAt(tenant: string, position: number, actors: ShownActors): Promise<DeliveredChange | undefined> {
    const fingerprint = (await history.fingerprintAt(tenant, position - 1)) ?? 0;
    const after = { position: position - 1, fingerprint };
    const range = { q: '', actors, after, maxItems: 1, maxPositions: 1, withErasures: true };
    const { items } = await history.readMatches(tenant, range);
    return items.find((change) => change.position === position);
  }

  return {
    ...createSubscriptionWrites(context),
    ...createControls(context),

    async find(tenant, id) {
      const document = faultOfChosenId(id) === undefined ? await findShown(db, tenant, id) : undefined;
      if (document === undefined) throw notFound(subscriptionNoun);
      return document;
    },

    list: (tenant, query, options) => documents.page(subscriptionRows(tenant), query, options),

    async attempts(tenant, id, query, options) {
      await requireSubscription(db, tenant, id);
      return await documents.page(attemptRows(tenant, id), query, options);
    },

    async sentRequest(tenant, id, number, { scopes }) {
      const { document } = await requireSubscription(db, tenant, id);
      const { q, actors = true, hide = [], target } = document;
      history.checkQuery(q, { actors, scopes });
      const { showRequest } = targetOf(targets, target);
      if (showRequest === undefined) {
        throw new AnnalsError('conflict_resource', 'Only what webhooks are sent can be shown again.');
      }
      const attempt = await findAttempt(db, tenant, id, number);
      if (attempt === undefined) throw notFound('attempt');
      const { at, first: position } = attempt;
      const change = position === null ? undefined : await changeAt(tenant, position, actors);
      // A later one at this position: the database was restored to an earlier state.
      const isAnother = change !== undefined && change.recordedAt > at + maxSkew;
      if (position !== null && (change === undefined || isAnother)) {
        throw new AnnalsError('resource_not_found', 'The change of this attempt is no longer kept.');
      }
      return await showRequest({ tenant, target, hide }, { at, change });
    },

    async preview(tenant, id, { after, limit, scopes }) {
      const { document } = await requireSubscription(db, tenant, id);
      const { q, actors = true } = document;
      history.checkQuery(q, { actors, scopes });
      const begin =
        after === undefined ? await history.positionAt(tenant, now() - day) : await history.positionOf(tenant, after);
      const reading = await history.readMatches(tenant, { q, actors, after: begin, maxItems: limit });
      const receivesAll = targetOf(targets, document.target).receivesOwnCreation === true;
      return receivesAll ? reading : withoutOwnCreation(reading, document);
    },
  };
}
