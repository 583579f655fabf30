import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { type CorrelationSeal, correlationSeal } from '../../../src/core/correlation-seal.ts';
import { AnnalsError } from '../../../src/core/errors.ts';
import type { ExportRequest } from '../../../src/core/export-history.ts';
import type { WrittenRestriction } from '../../../src/core/written-restriction.ts';
import { hideValues } from '../../../src/history/entries/masks.ts';
import {
  entityTypesOf,
  parseOwnQuery,
  readRestriction,
  requireField,
  showsDocument,
  usesContext,
} from '../../../src/history/search/plan/restriction.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import type { Restriction } from '../../../src/http/credentials.ts';
import { QueryError } from '../../../src/query/query-error.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { rowsOfCsv } from '../../support/oracle/csv.ts';
import { arbitraryHistory } from '../../support/oracle/history-arbitrary.ts';
import { checkLaw, someOf } from '../../support/oracle/law.ts';
import { hardPaths } from '../../support/oracle/path-arbitrary.ts';
import { arbitraryQuery } from '../../support/oracle/query-arbitrary.ts';
import { holds } from '../../support/oracle/query-evaluator.ts';
import type { QueryVocabulary } from '../../support/oracle/query-vocabulary.ts';
import { startTestServer } from '../../support/server/server.ts';

const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const histories = 2;
const queriesOfHistory = 2;

type Entry = Omit<Change, 'identity'>;
type Asked = readonly [operation: string, parameters: Record<string, string>];

const allTime = 'occurredAt:>="1970-01-01T00:00:00Z"';
/** Requests made under each restriction, in addition to random queries. */
const always: readonly Asked[] = [
  ['changelogs', { q: '' }],
  ['histogram', { q: 'type:(create, update)' }],
  ...['after:(1, OPEN)', 'before:>=0', 'after:exists', 'is:(lower, higher)'].map(
    (term): Asked => ['changelogs', { q: `${allTime} change:elemMatch(${term})` }],
  ),
];

let tenants = 0;

const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));

test('a restricted client gets the responses of a tenant that has only the shown entries, masked', async () => {
  const scenario = arbitraryHistory(['any'], now, { who: true }).chain(({ batches, vocabulary }) =>
    fc.record({
      batches: fc.constant(batches),
      restrictions: fc.array(arbitraryRestriction(vocabulary), { minLength: 1, maxLength: 3 }),
      asked: someOf(arbitraryAsked(vocabulary), queriesOfHistory),
      vocabulary: fc.constant(vocabulary),
    }),
  );
  await checkLaw(scenario, { runs: histories }, async ({ batches, restrictions, asked, vocabulary }) => {
    const whole = await record(batches.map(({ changes, fold }) => ({ changes, fold })));
    const all = await server.token(whole);
    for (const written of restrictions) {
      const restriction = readRestriction(written);
      const client = await server.createClient(whole, { restriction });
      const { clientId } = client;
      const seal = correlationSeal(server.context.sealer, { tenant: whole, maker: clientId, subject: '' });
      const part = await record(
        await Promise.all(
          batches.map(async ({ changes, fold }) => ({ changes: await shownOf(written, changes, seal), fold: !fold })),
        ),
      );
      const [of, own] = [await server.tokenOf(client), await server.token(part)];
      for (const [operation, parameters] of [...always, ...asked, ...wholeReads(restriction, vocabulary)]) {
        const context = { written, operation, parameters };
        const found = await ask(whole, of, operation, parameters);
        const status = refusalOf(restriction, parameters);
        if (status !== undefined) expect({ ...context, status: found.status }).toEqual({ ...context, status });
        else expect({ ...context, ...found }).toEqual({ ...context, ...(await ask(part, own, operation, parameters)) });
      }
      await checkRefs({ whole, all, of, part, own });
      await checkViewer({ whole, part, own, written, seal, asked: [...always, ...asked] });
      const { q: random = '' } =
        asked.find(([, parameters]) => refusalOf(restriction, parameters) === undefined)?.[1] ?? {};
      for (const [format, q] of [
        ['NDJSON', allTime],
        ['CSV', random],
      ] as const) {
        const file = await exported(whole, { format, q, restriction: written, clientId });
        expect({ written, q, file }).toEqual({ written, q, file: await exported(part, { format, q }) });
      }
    }
  });
});

/**
 * A viewer token for the last part, issued by a client with the preceding parts, gets the same responses as the
 * tenant of the part.
 */
async function checkViewer(fixture: {
  whole: string;
  part: string;
  own: string;
  written: readonly WrittenRestriction[];
  seal: CorrelationSeal;
  asked: readonly Asked[];
}): Promise<void> {
  const { whole, part, own, written, seal } = fixture;
  const [outer, inner = outer] = written;
  if (outer === undefined || inner === undefined) throw new Error('a restriction has a part');
  // A restricted maker may not read contexts, and does not know correlation ids.
  const { query } = readRestriction([inner]);
  if (inner !== outer && (usesContext(query) || inner.query.includes('correlationId'))) return;
  const maker = await server.createClient(whole, {
    ...(inner === outer ? {} : { restriction: readRestriction([outer]) }),
  });
  const ofViewer = correlationSeal(server.context.sealer, {
    ...{ tenant: whole, maker: maker.clientId, subject: 'anybody' },
  });
  /** As the client of the part has them. */
  const resealed = (text: string) =>
    text.replaceAll(/[\w-]{60,}/g, (sealed) => {
      const correlationId = ofViewer.open(sealed);
      return correlationId === undefined ? sealed : seal.seal(correlationId);
    });
  const token = await server.viewerToken(whole, {
    token: await server.tokenOf(maker),
    q: inner.query.trim() || 'entity:*',
    hide: [...inner.hide],
    ...(inner.actors !== undefined && { actors: inner.actors }),
  });
  const restriction = readRestriction(written);
  const viewed = (operation: string) => (operation === 'changelogs' ? 'changes' : operation);
  for (const [operation, parameters] of fixture.asked) {
    const found = await ask(whole, token, viewed(operation), parameters, { at: 'viewer', mapped: resealed });
    const context = { written, operation, parameters };
    const status = refusalOf(restriction, parameters);
    if (status !== undefined) expect({ ...context, status: found.status }).toEqual({ ...context, status });
    else expect({ ...context, ...found }).toEqual({ ...context, ...(await ask(part, own, operation, parameters)) });
  }
  const file = await server.call(`/viewer/${whole}/changes?${new URLSearchParams({ q: allTime })}`, {
    token,
    headers: { accept: 'text/csv' },
  });
  const rows = parsedRows(resealed(await file.text()));
  expect({ written, rows }).toEqual({ written, rows: await exported(part, { format: 'CSV', q: allTime }) });
}

/** The status of a request for what the restriction does not show of actors, or for contexts; undefined: of no such. */
function refusalOf(restriction: Restriction, { q = '', field }: Readonly<Record<string, string>>): number | undefined {
  const scopes = ['changelog.changelog_read'] as const;
  try {
    parseOwnQuery(q, { restriction, scopes });
    if (field !== undefined && field !== 'document') requireField({ restriction, scopes }, field);
    return undefined;
  } catch (error) {
    if (error instanceof QueryError) return 400;
    if (error instanceof AnnalsError) return error.status;
    throw error;
  }
}

/** A ref of the whole tenant is found if its entry is in the part, and otherwise looks like one that is gone. */
async function checkRefs(fixture: {
  whole: string;
  all: string;
  of: string;
  part: string;
  own: string;
}): Promise<void> {
  const q = allTime;
  const refs = async (tenant: string, token: string) => {
    const answer = await server.call(
      `/changelog/${tenant}/changelogs?${new URLSearchParams({ q, ref: 'true', size: '100' })}`,
      { token },
    );
    return ((await answer.json()) as { items: { ref: string }[] }).items.map(({ ref }) => ref);
  };
  const shown = await refs(fixture.whole, fixture.of);
  expect(shown.length).toBe((await refs(fixture.part, fixture.own)).length);
  for (const ref of (await refs(fixture.whole, fixture.all)).slice(0, 20)) {
    const { status, body } = await ask(fixture.whole, fixture.of, 'entries', { ref });
    if (shown.includes(ref)) expect(status).toBe(200);
    else if (shown.length < 100) {
      expect({ status, body }).toEqual({
        status: 404,
        body: { status: 404, type: 'resource_not_found', message: 'This change is not kept any more.' },
      });
    }
  }
}

/** Applies the parts of a restriction to the entries, one after another, and seals their correlation ids. */
async function shownOf(
  written: readonly WrittenRestriction[],
  changes: readonly Entry[],
  seal: CorrelationSeal,
): Promise<Entry[]> {
  let shown = [...changes];
  for (const [index, part] of written.entries()) {
    const { query, hide } = readRestriction([part]);
    const { actors } = readRestriction(written.slice(0, index + 1));
    const matching = shown.filter((entry) => holds(query, entry));
    const masked = await hideValues(
      matching.map(({ paths }) => paths),
      hide,
    );
    shown = matching.map(({ actorId, onBehalfOf, correlationId, ...entry }, place) => ({
      ...entry,
      paths: masked[place] ?? '',
      ...(actors === 'all' && { ...(actorId && { actorId }), ...(onBehalfOf && { onBehalfOf }) }),
      ...(actors === 'all' && correlationId && { correlationId }),
    }));
  }
  return shown.map((entry) =>
    entry.correlationId === undefined ? entry : { ...entry, correlationId: seal.seal(entry.correlationId) },
  );
}

function arbitraryRestriction(vocabulary: QueryVocabulary): fc.Arbitrary<WrittenRestriction[]> {
  const quoted = (text: string) => `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
  const entity = fc.constantFrom(...vocabulary.entities).map((name) => `entity:${quoted(name)}`);
  const document = fc
    .tuple(entity, fc.constantFrom(...vocabulary.entityIds))
    .map(([ofEntity, id]) => `${ofEntity} entityId:${quoted(id)}`);
  const either = fc.tuple(entity, entity).map(([one, other]) => `compoundLogicalQuery:((${one}) OR (${other}))`);
  const query = fc.oneof(
    fc.constant(''),
    entity,
    document,
    either,
    fc.constantFrom('occurredAt:>="1971-01-01T00:00:00Z"', 'occurredAt:<"2026-09-10T00:00:00Z"'),
    { weight: 3, arbitrary: arbitraryQuery(vocabulary).map(({ text }) => text) },
  );
  const hide = fc.oneof(
    fc.constantFrom(['*'], []),
    fc.uniqueArray(
      fc.constantFrom(...hardPaths, '*', '*.*', 'price.*', 'items.quantity', '*.0').filter((path) => path !== ''),
      { maxLength: 4 },
    ),
  );
  const actors = fc.constantFrom<WrittenRestriction['actors']>(undefined, true, 'all', 'all');
  const part = fc.record({ query, hide, actors }).filter((one) => isRestriction([one]));
  return fc.oneof(
    { weight: 3, arbitrary: part.map((one) => [one]) },
    fc
      .tuple(part, part)
      .map((both) => [...both])
      .filter(isRestriction),
  );
}

function isRestriction(written: readonly WrittenRestriction[]): boolean {
  try {
    readRestriction(written);
    return true;
  } catch {
    return false;
  }
}

function arbitraryAsked(vocabulary: QueryVocabulary): fc.Arbitrary<Asked> {
  const q = fc.oneof(
    arbitraryQuery(vocabulary).map(({ text }) => text),
    fc.constantFrom('', allTime),
    arbitraryValues(),
  );
  const number = (...numbers: number[]) => fc.constantFrom(...numbers.map(String));
  return fc.oneof(
    fc.record({ q, page: number(1, 2, 99), size: number(1, 20, 100) }).map((found): Asked => ['changelogs', found]),
    fc.record({ q, ref: fc.constant('true'), valueLimit: number(256) }).map((found): Asked => ['changelogs', found]),
    fc.record({ q, buckets: number(1, 7, 60) }).map((found): Asked => ['histogram', found]),
    fc
      .record({
        q,
        field: fc.constantFrom('entity', 'type', 'actor', 'actorId', 'onBehalfOf', 'path'),
        size: number(1, 3, 100),
      })
      .map((found): Asked => ['facets', found]),
  );
}

/** A query on values, of one path or any. */
function arbitraryValues(): fc.Arbitrary<string> {
  const ofPath = fc.constantFrom('', ...hardPaths).map((path) => {
    return path === '' ? '' : `path:"${path.replaceAll(/["\\]/g, '\\$&')}"`;
  });
  const values = [
    '1',
    'OPEN',
    '*A*',
    '"1"',
    'null',
    'exists',
    'missing',
    '>=0',
    '<"Z"',
    '"********"',
    '(1, OPEN, true)',
  ];
  const ofSide = fc
    .constantFrom('before', 'after')
    .chain((side) => fc.constantFrom(...values).map((value) => `${side}:${value}`));
  const term = fc.oneof(ofSide, fc.constantFrom('is:lower', 'is:(lower, higher)'));
  return fc.tuple(ofPath, term).map((terms) => `${allTime} change:elemMatch(${terms.join(' ').trim()})`);
}

/** Reads of names and documents, where the restriction allows them. */
function wholeReads(restriction: Restriction, { entities, entityIds }: QueryVocabulary): Asked[] {
  const documents = entities
    .flatMap((entity) => entityIds.map((entityId) => ({ entity, entityId })))
    .slice(0, 6)
    .filter((document) => showsDocument(restriction, document) !== undefined)
    .flatMap((document): Asked[] => [
      ['documents', document],
      ['documents', { ...document, changes: '2' }],
    ]);
  if (entityTypesOf(restriction) === undefined) return documents;
  const names = ['entity', 'actor', 'related.entity', 'path', 'document'].flatMap((field): Asked[] => [
    ['names', { field }],
    ['names', { field, prefix: 'j', size: '2' }],
    ['names', { field, entity: entities[0] ?? '' }],
  ]);
  return [...documents, ...names];
}

/** The lines of a file with JSON parsed, since a character has several escapes. */
async function exported(
  tenant: string,
  request: Pick<ExportRequest, 'format' | 'q' | 'restriction' | 'clientId'>,
): Promise<unknown[]> {
  let text = '';
  const { signal } = new AbortController();
  await server.context.exportHistory.run({ tenant, ...request, askedAt: now, signal }, async (piece) => {
    text += piece.text;
  });
  if (request.format === 'NDJSON') return text.split('\n').map((line) => (line === '' ? '' : JSON.parse(line)));
  return parsedRows(text);
}

function parsedRows(csv: string): unknown[] {
  return rowsOfCsv(csv).map((fields) => fields.map((field) => (field.startsWith('{"') ? parsed(field) : field)));
}

function parsed(field: string): unknown {
  try {
    return JSON.parse(field);
  } catch {
    return field;
  }
}

/** A tenant with the batches, the deltas folded after some of them. */
async function record(batches: readonly { changes: readonly Entry[]; fold: boolean }[]): Promise<string> {
  tenants += 1;
  const tenant = `tenant${tenants}`;
  await server.createTenant(tenant);
  for (const { changes, fold } of batches) {
    await createRecorder(
      server.context.db,
      tenant,
      () => now,
    )(changes.map((change) => ({ ...change, identity: randomBytes(16) })));
    if (fold) await foldHistory(server.context.db, tenant);
  }
  return tenant;
}

async function ask(
  tenant: string,
  token: string,
  operation: string,
  parameters: Record<string, string>,
  {
    at = 'changelog',
    mapped = (text) => text,
  }: { at?: 'changelog' | 'viewer'; mapped?: (text: string) => string } = {},
) {
  const answer = await server.call(`/${at}/${tenant}/${operation}?${new URLSearchParams(parameters)}`, { token });
  const text = mapped(await answer.text());
  return { status: answer.status, body: JSON.parse(text.replaceAll(/,"ref":"[\w-]+"/g, '')) as unknown };
}
