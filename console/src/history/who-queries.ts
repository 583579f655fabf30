import type { Entry } from '../api/history-reads.ts';
import { writtenText } from '../query-text/edit-query.ts';
import type { Target } from '../router/router.tsx';
import { atAnyTime } from './document-queries.ts';

/** Whom an entry names. */
export type Named = Pick<Entry, 'actor' | 'actorId' | 'onBehalfOf' | 'correlationId' | 'context'>;

/** The page of the actor, at any time: by the id, or by the name of one without an id. */
export function personOf({ actor, actorId }: { readonly actor: string; readonly actorId: string | undefined }): Target {
  const who = actorId === undefined ? { name: actor } : { id: actorId };
  return { path: 'actor', parameters: { ...who, q: atAnyTime } };
}

/** The query for the changes of one actor. */
export function queryOfActor({ id, name }: { readonly id: string | undefined; readonly name: string }): string {
  return id === undefined ? `actor:${writtenText(name)}` : `actorId:${writtenText(id)}`;
}

/** The query for all changes on behalf of the same person: by the id, if known. */
export function queryOfOnBehalfOf({ id, name = '' }: NonNullable<Named['onBehalfOf']>): string {
  const written = id === undefined ? `onBehalfOf:${writtenText(name)}` : `onBehalfOfId:${writtenText(id)}`;
  return `${written} ${atAnyTime}`;
}

/** The query for all changes from an address. */
export function queryOfAddress(address: string): string {
  return `context.ip:${writtenText(address)} ${atAnyTime}`;
}

/** The query for all changes of one request or transaction: its other changes may have occurred at any time. */
export function queryOfCorrelation(correlationId: string): string {
  return `correlationId:${writtenText(correlationId)} ${atAnyTime}`;
}

/** The address that a change came from, if its context has one. */
export function addressOf({ context }: Pick<Named, 'context'>): string | undefined {
  const ip = context?.get('ip');
  return typeof ip === 'string' && ip !== '' ? ip : undefined;
}
