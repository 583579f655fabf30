import { describe, expect, test } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import { takeDatabaseAway } from '../support/server/database-away.ts';
import { startTestServer } from '../support/server/server.ts';

const read = 'changelog.changelog_read';
const manage = 'changelog.changelog_manage';
const fields =
  'entity, entityId, type, actor, actorId, onBehalfOf, onBehalfOfId, correlationId, context.*, occurredAt, related.entity, related.entityId, path, related, change or compoundLogicalQuery';
const forbidden = {
  status: 403,
  type: 'insufficient_permissions',
  message: 'Given request does not have required scopes. It is not authorized to perform this operation.',
};
const internal = {
  status: 500,
  type: 'internal_service_error',
  message: 'Problem encountered while trying to retrieve changelog history.',
};
const nothingFound = { items: [], page: 1, size: 20, totalElements: 0, totalPages: 0 };

let now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);

const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
const token = await server.token('acme', { scope: read });

async function answer(query: string, bearer = token, tenant = 'acme'): Promise<{ status: number; body: unknown }> {
  const response = await server.call(`/changelog/${tenant}/changelogs${query}`, { token: bearer });
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  return { status: response.status, body: await response.json() };
}

test('the first of several faults names the error, and its details have all', async () => {
  expect(await answer('?size=0&page=0')).toEqual({
    status: 400,
    body: {
      status: 400,
      type: 'validation_violation',
      message: 'page must be >= 1',
      details: [
        { field: 'page', message: 'page must be >= 1' },
        { field: 'size', message: 'size must be between 1 and 100' },
      ],
    },
  });
});

describe('q', () => {
  test('an unknown field is 400 with the message that clients match', async () => {
    expect(await answer('?q=entity:order%20status:OPEN')).toEqual({
      status: 400,
      body: {
        status: 400,
        type: 'validation_violation',
        message: 'Unsupported query field: status',
        details: [{ field: 'q', message: `At position 14: expected ${fields}, found "status"` }],
      },
    });
  });

  test('entityId without entity is 400 with the message that clients match', async () => {
    const { status, body } = await answer('?q=type:update+entityId:1');
    expect({ status, body }).toMatchObject({
      status: 400,
      body: {
        status: 400,
        type: 'validation_violation',
        message: 'entity is required when entityId is provided',
        details: [{ field: 'q', message: expect.stringMatching(/^At position 13: expected /) }],
      },
    });
  });

  // Each with the position of the unexpected token.
  test.each([
    ['a term without a colon', 'entity', 1],
    ['no field at all', ':order', 1],
    ['a field without a value', 'entity:', 8],
    ['a blank for a value', 'entity: type:create', 8],
    ['an unknown field first', 'status:OPEN', 1],
    ['an unknown field later', 'type:create x:1', 13],
    ['an unknown field in elemMatch', 'related:elemMatch(entity:a type:create)', 28],
    ['an unknown field in a group', 'compoundLogicalQuery:((x:1))', 24],
    ['a quote without an end', 'actor:"Jane', 12],
    ['text right after a quoted value', 'actor:"Jane"x', 13],
    ['a list without an end', 'actor:(a, b', 12],
    ['a list with nothing in it', 'actor:()', 8],
    ['a list that ends in a comma', 'actor:(a,)', 10],
    ['a parenthesis too few', 'actor:John (Sales', 12],
    ['a parenthesis too many', 'actor:John) x', 11],
    ['a word AND in a bare value', 'actor:Research AND Development', 16],
    ['a word OR in a bare value', 'actor:a OR b', 9],
    ['a word NOT in a bare value', 'actor:NOT', 7],
    ['AND between terms', 'entity:order AND type:update', 14],
    ['a type that is none', 'type:insert', 6],
    ['a glob for a type', 'type:cre*', 6],
    ['a regular expression for a type', 'type:~create', 6],
    ['a time without a comparison', 'occurredAt:"2026-01-01T00:00:00Z"', 12],
    ['a time without quotes', 'occurredAt:>2026-01-01T00:00:00Z', 13],
    ['a date that does not exist', 'occurredAt:>"2026-02-29T00:00:00Z"', 14],
    ['a time without an offset', 'occurredAt:>"2026-01-01T00:00:00"', 14],
    ['ten fractional digits', 'occurredAt:>"2026-01-01T00:00:00.0123456789Z"', 14],
    ['a range with another word', 'occurredAt:(>"2026-01-01T00:00:00Z" OR <"2026-02-01T00:00:00Z")', 36],
    ['a range for a text', 'actor:>"a"', 7],
    ['related without elemMatch', 'related:customer', 9],
    ['related with nothing to match', 'related:elemMatch()', 19],
    ['two kinds of operator in one group', 'compoundLogicalQuery:((type:create) OR (type:update) AND (entity:a))', 54],
    ['a group without an end', 'compoundLogicalQuery:((type:create)', 36],
    ['a group that is none', 'compoundLogicalQuery:type:create', 22],
    ['an operator without operand', 'compoundLogicalQuery:((type:create) OR )', 40],
    ['an operator in small letters', 'compoundLogicalQuery:((type:create) or (type:update))', 37],
    ['an entity in another arm', 'compoundLogicalQuery:((entityId:1) OR (entity:a))', 24],
    ['a look-ahead', 'actor:~Jane(?= Doe)', 12],
    ['a back-reference', 'actor:~(a)\\1', 11],
    ['a regular expression without an end', 'actor:~[a', 8],
    ['an empty regular expression', 'actor:~', 8],
    ['NUL', 'actor:a\u0000b', 8],
    ['emoji before the fault count as one character each', 'actor:"😀😀" x:1', 12],
    ['more than 4,096 characters', `actor:${'😀'.repeat(4091)}`, 4097],
    ['more than 16 levels', `compoundLogicalQuery:${'('.repeat(18)}type:create${')'.repeat(18)}`, 38],
    ['more than 256 terms', 'type:create '.repeat(257), 3073],
    ['expressions larger than the budget', 'actor:~((a{100}){100}){100}', 8],
  ])('%s is 400 with the position in details[0]', async (_case, q, position) => {
    const { status, body } = await answer(`?q=${encodeURIComponent(q)}`);
    const fault = body as { message: string; details: { field: string; message: string }[] };
    expect({ status, ...fault }).toEqual({
      status: 400,
      type: 'validation_violation',
      message: expect.any(String),
      details: [{ field: 'q', message: expect.stringMatching(new RegExp(`^At position ${position}: expected `)) }],
    });
  });
});

describe('the token', () => {
  const fault = (faultstring: string, errorcode: string) => ({ fault: { faultstring, detail: { errorcode } } });

  test.each(['', 'x', 'a.b.c'])('missing or invalid is 401, before all other faults: %j', async (text) => {
    const response = await server.call(
      '/changelog/NO/changelogs?page=0&q=x',
      text === '' ? {} : { headers: { authorization: `Bearer ${text}` } },
    );
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toBe('Bearer');
    expect(await response.json()).toEqual(fault('Invalid access token', 'oauth.v2.InvalidAccessToken'));
  });

  test('expired is 401 with a fault of its own', async () => {
    const past = now;
    now += 14_400_000;
    const { status, body } = await answer('');
    now = past;
    expect({ status, body }).toEqual({
      status: 401,
      body: fault('Access Token expired', 'keymanagement.service.access_token_expired'),
    });
  });

  test.each([read, manage])('with %s alone suffices', async (scope) => {
    expect(await answer('', await server.token('acme', { scope }))).toEqual({ status: 200, body: nothingFound });
  });

  test('without either scope is 403, before faults of the query', async () => {
    const scope = 'ai.agent_read configuration.configuration_manage schema.schema_manage';
    expect(await answer('?page=0&q=x', await server.token('acme', { scope }))).toEqual({
      status: 403,
      body: forbidden,
    });
  });

  test('of another tenant is 403, whether that tenant exists or not', async () => {
    await server.createTenant('other');
    for (const tenant of ['other', 'nobody']) {
      expect(await answer('?page=0', token, tenant)).toEqual({ status: 403, body: forbidden });
    }
  });
});

test.each(['ACME', 'a', '1acme', 'acme-1', 'acme_1', 'acm%C3%A9', 'acme%2F', '%20acme'])(
  'a tenant in the path that breaks the pattern is 400: %s',
  async (tenant) => {
    expect(await answer('?page=0', token, tenant)).toMatchObject({
      status: 400,
      body: { status: 400, type: 'validation_violation', details: [{ field: 'tenant' }] },
    });
  },
);

test('a tenant without entries has an empty history for every query', async () => {
  const empty = await server.token('empty');
  for (const q of ['', 'entity:order', 'actor:~.*', 'entity:* entityId:~.', 'related.entityId:x', 'related.entity:*']) {
    expect(await answer(`?q=${encodeURIComponent(q)}`, empty, 'empty')).toEqual({ status: 200, body: nothingFound });
  }
});

describe('500 has a fixed message, and the cause is only in the log', () => {
  const queries = ['', '?q=entity:order', '?q=entity:order+entityId:1'];

  test('where a statement fails', async () => {
    const { pool } = server.database;
    await pool.query('alter table change_entry rename to change_entry_away');
    await pool.query('alter table change_tally rename to change_tally_away');
    try {
      for (const query of queries) expect(await answer(query)).toEqual({ status: 500, body: internal });
    } finally {
      await pool.query('alter table change_entry_away rename to change_entry');
      await pool.query('alter table change_tally_away rename to change_tally');
    }
    expect(server.logLines.join('')).toContain('change_entry');
    for (const query of queries) expect(await answer(query)).toEqual({ status: 200, body: nothingFound });
  });

  test('where the database is away, until it is back', async () => {
    const { pool, url } = server.database;
    const bringBack = await takeDatabaseAway(url);
    try {
      // A fresh token: neither a cached client nor pooled connections may hide the loss.
      for (const query of queries) expect(await answer(query)).toEqual({ status: 500, body: internal });
    } finally {
      await bringBack();
    }
    for (const query of queries) expect(await answer(query)).toEqual({ status: 200, body: nothingFound });
    expect(pool.ended).toBe(false);
  });
});
