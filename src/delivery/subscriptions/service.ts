import { faultOfChosenId } from '../../http/chosen-id.ts';
import type { Scope } from '../../http/scopes.ts';
import type { DocumentLists, ListParameters, Page, PageRequest } from '../../pagination/paginator.ts';
import { notFound } from '../../recording/documents/own-documents.ts';
import { type Reading, withoutOwnCreation } from '../changes.ts';
import { attemptRows } from './attempt-store.ts';
import { createControls, type SubscriptionControls } from './control-subscriptions.ts';
import { findShown, requireSubscription, subscriptionNoun, subscriptionRows, targetOf } from './store.ts';
import { createSubscriptionWrites, type SubscriptionContext, type SubscriptionWrites } from './write-subscriptions.ts';

/** The subscriptions of tenants. Documents are returned as JSON texts. */
export interface Subscriptions extends SubscriptionWrites, SubscriptionControls {
  find(tenant: string, id: string): Promise<string>;
  list(tenant: string, query: ListParameters, options: PageRequest): Promise<Page>;
  attempts(tenant: string, id: string, query: ListParameters, options: PageRequest): Promise<Page>;
  /** The changes that match, since a day ago or after a cursor. */
  preview(tenant: string, id: string, query: PreviewRequest): Promise<Reading>;
}

interface PreviewRequest {
  readonly after?: string | undefined;
  readonly limit: number;
  /** Of the reader. */
  readonly scopes: readonly Scope[];
}

/** Milliseconds. */
const day = 24 * 60 * 60 * 1000;

export function createSubscriptions(context: SubscriptionContext & { documents: DocumentLists }): Subscriptions {
  const { db, documents, now, history, targets } = context;
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
