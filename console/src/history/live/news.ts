import type { FeedChange } from '@annals/client';

/** A change that was recorded since the page was read. */
export type NewChange = Pick<FeedChange, 'ref' | 'at' | 'type' | 'entity' | 'entityId' | 'actor'>;

/** New changes that are kept. Then nothing more is followed until the page is read anew. */
export const maxNews = 1_000;

/** Milliseconds that a query without a from-bound looks back, as the service has it. */
const defaultWindow = 30 * 86_400_000;

/** Adds a change of the feed, unless the page shows it (`known`), or the query would not by its time. */
export function withChange(
  changes: readonly NewChange[],
  { ref, at, type, entity, entityId, actor }: NewChange,
  known: ReadonlySet<string>,
  { hasFrom, now }: { readonly hasFrom: boolean; readonly now: number },
): readonly NewChange[] {
  const isOutside = !hasFrom && Date.parse(at) < now - defaultWindow;
  if (isOutside || known.has(ref) || changes.some((one) => one.ref === ref)) return changes;
  // The rest of the change, such as its values, is let go.
  return [...changes, { ref, at, type, entity, entityId, actor }];
}

/** What is still new after the page was read: the first `before` were there when it was asked for, others of `known` it shows. */
export function withPage(
  changes: readonly NewChange[],
  before: number,
  known: ReadonlySet<string>,
): readonly NewChange[] {
  return changes.slice(before).filter(({ ref }) => !known.has(ref));
}
