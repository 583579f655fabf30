import { faultOfChosenId } from '../../http/chosen-id.ts';
import type { AskedOfList, DocumentLists } from '../../pagination/document-lists.ts';
import type { Page, PageWanted } from '../../pagination/paginator.ts';
import { notFound } from '../../recording/documents/own-documents.ts';
import type { Reading } from '../changes.ts';
import { attemptRows } from './attempt-store.ts';
import { foundSubscription, subscriptionNoun } from './lookup.ts';
import { createSteering, type SubscriptionSteering } from './steer-subscriptions.ts';
import { findShown, subscriptionRows } from './store.ts';
import { createSubscriptionWrites, type SubscriptionContext, type SubscriptionWrites } from './write-subscriptions.ts';

/** What a tenant wants to have sent. Documents go out as JSON texts. */
export interface Subscriptions extends SubscriptionWrites, SubscriptionSteering {
  find(tenant: string, id: string): Promise<string>;
  list(tenant: string, asked: AskedOfList, wanted: PageWanted): Promise<Page>;
  attempts(tenant: string, id: string, asked: AskedOfList, wanted: PageWanted): Promise<Page>;
  /** What would have matched, from a day ago or behind a cursor. */
  preview(tenant: string, id: string, asked: { after?: string | undefined; limit: number }): Promise<Reading>;
}

/** Milliseconds. */
const day = 24 * 60 * 60 * 1000;

export function createSubscriptions(context: SubscriptionContext & { documents: DocumentLists }): Subscriptions {
  const { db, documents, now, history } = context;
  return {
    ...createSubscriptionWrites(context),
    ...createSteering(context),

    async find(tenant, id) {
      const document = faultOfChosenId(id) === undefined ? await findShown(db, tenant, id) : undefined;
      if (document === undefined) throw notFound(subscriptionNoun);
      return document;
    },

    list: (tenant, asked, wanted) => documents.page(subscriptionRows(tenant), asked, wanted),

    async attempts(tenant, id, asked, wanted) {
      await foundSubscription(db, tenant, id);
      return await documents.page(attemptRows(tenant, id), asked, wanted);
    },

    async preview(tenant, id, { after, limit }) {
      const { document } = await foundSubscription(db, tenant, id);
      const begin =
        after === undefined ? await history.positionAt(tenant, now() - day) : await history.positionOf(tenant, after);
      return await history.readMatches(tenant, { q: document.q, after: begin, maxItems: limit });
    },
  };
}
