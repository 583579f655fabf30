import { Type } from 'typebox';
import { queryInteger } from '../../http/query-parameters.ts';
import { ChangelogChangeItem, withContext } from '../routes/schemas.ts';

/** Items of one answer. */
export const feedLimits = { items: 1_000, defaultItems: 100, wait: 25 };

const cursor = Type.String({
  description: 'Opaque: where the reading stands. It goes with any query and does not expire.',
});

export const FeedChange = Type.Object(
  {
    ...ChangelogChangeItem.properties,
    // Restricted credentials have no feed.
    actor: Type.String({ ...ChangelogChangeItem.properties.actor, description: 'Who made the change.' }),
    position: Type.Integer({ minimum: 1, format: 'int64', description: 'Counts the changes of the tenant.' }),
    cursor,
    ref: Type.String({ description: 'Opaque and constant. `…/entries` answers the change with this ref.' }),
  },
  { $id: 'FeedChange' },
);

export const FeedAnswer = Type.Object(
  {
    items: Type.Array(FeedChange, { description: 'Oldest first, by position.' }),
    cursor,
    caughtUp: Type.Boolean({ description: 'Whether there was nothing more to read.' }),
    expired: Type.Integer({
      minimum: 0,
      description:
        'The changes behind `after` that retention dropped before they were read, whether they match or not.',
    }),
  },
  { $id: 'FeedAnswer' },
);

export const FeedQuery = Type.Object({
  q: Type.Optional(
    Type.String({
      description: 'A query, as docs/query-language.md describes it. The feed has no default window.',
      examples: ['entity:product type:update'],
    }),
  ),
  after: Type.Optional(
    Type.String({
      default: 'now',
      description: 'A cursor of this feed, `start` (the oldest change that is kept) or `now`.',
    }),
  ),
  limit: Type.Optional(
    queryInteger({
      minimum: 1,
      maximum: feedLimits.items,
      default: feedLimits.defaultItems,
      message: `limit must be between 1 and ${feedLimits.items}`,
    }),
  ),
  wait: Type.Optional(
    queryInteger({
      minimum: 0,
      maximum: feedLimits.wait,
      default: 0,
      message: `wait must be between 0 and ${feedLimits.wait}`,
      description: 'Seconds to wait for the first item.',
    }),
  ),
  context: withContext,
});

export const FeedHeaders = Type.Object({
  'last-event-id': Type.Optional(
    Type.String({ description: 'A cursor. It wins over `after`: a client of server-sent events sends it by itself.' }),
  ),
});

export const FeedEvents = Type.String({
  description:
    'Server-sent events: `position` (at once, every 15 s, and after 10,000 positions without a match), `change` (data: the change), ' +
    '`caught-up` (once, when all that was there has been sent), `reset` (the database was restored; data: `{"reason", "oldest"}`). ' +
    'The id of each event is a cursor.',
});

export const exampleOfFeedEvents = [
  'retry: 5000',
  'id: ARaGf-AK\nevent: position\ndata: {"position":41}',
  'id: AXnMTXca\nevent: change\ndata: {"at":"2026-09-01T09:30:00.000Z","type":"update","entity":"product","entityId":"p-17","paths":{},"actor":"Jane Doe","related":[],"ref":"AQ","position":42,"cursor":"AXnMTXca"}',
  'id: AXnMTXca\nevent: caught-up\ndata: {"position":42}',
  '',
].join('\n\n');
