import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Change } from '../../src/recording/change.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { checkLaw, someOf } from '../support/oracle/law.ts';
import { hardPaths } from '../support/oracle/path-arbitrary.ts';
import { arbitraryQuery, hardExpressions, hardNames } from '../support/oracle/query-arbitrary.ts';
import { entriesOf, examplesOf } from '../support/oracle/query-document.ts';
import { arbitraryMutatedText } from '../support/oracle/query-mutations.ts';
import { startTestServer } from '../support/server/server.ts';

// The moment of docs/query-language.md.
const now = Date.UTC(2026, 9, 1);

const tokens = new Map<string, string>();
const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
const document = await readFile(join(import.meta.dirname, '..', '..', 'docs', 'query-language.md'), 'utf8');
for (const tenant of ['document', 'fuzzed']) tokens.set(tenant, await server.token(tenant));
const { db } = server.context;
const oldestFirst = entriesOf(document).toReversed();
await createRecorder(
  db,
  'document',
  () => now,
)(
  oldestFirst.map(
    (entry): Change => ({
      ...entry,
      type: entry.type as Change['type'],
      identity: randomBytes(16),
      name: String(entriesOf(document).findIndex(({ at }) => at === entry.at) + 1),
    }),
  ),
);
await createRecorder(
  db,
  'fuzzed',
  () => now,
)(
  hardNames.map((name, nth) => ({
    identity: randomBytes(16),
    at: now - nth * 1_000,
    type: (['create', 'update', 'delete'] as const)[nth % 3] ?? 'update',
    entity: name,
    entityId: hardNames[(nth * 7) % hardNames.length] ?? name,
    actor: hardNames[(nth * 11) % hardNames.length] ?? name,
    related: [{ entity: name, entityId: name }],
    paths: `{${JSON.stringify(hardPaths[nth % hardPaths.length])}:{"before":2,"after":1}}`,
  })),
);

interface Body {
  items: { name?: string }[];
  totalElements: number;
  message: string;
  details: { field: string; message: string }[];
}

async function ask(tenant: string, q: string): Promise<{ status: number; body: Body }> {
  const encoded = new URLSearchParams({ q: q.toWellFormed(), size: '100' });
  const response = await server.call(`/changelog/${tenant}/changelogs?${encoded}`, { token: tokens.get(tenant) ?? '' });
  return { status: response.status, body: (await response.json()) as Body };
}

describe('the examples of docs/query-language.md', () => {
  test('find over HTTP what the page documents', async () => {
    const examples = examplesOf(document);
    expect(examples.length).toBeGreaterThan(40);
    for (const { query, outcome } of examples) {
      const { status, body } = await ask('document', query);
      if (outcome.startsWith('400 ')) {
        expect({ query, status, field: body.details?.[0]?.field }).toEqual({ query, status: 400, field: 'q' });
        expect(`${body.message} ${body.details[0]?.message}`).toContain(outcome.slice('400 '.length));
      } else {
        const found = body.items?.map((item) => item.name).join(' ') || 'none';
        expect({ query, status, found }).toEqual({ query, status: 200, found: outcome });
      }
    }
  });
});

test('any q is 200 or 400, and a 400 has the position', async () => {
  const vocabulary = {
    entities: hardNames,
    entityIds: hardNames,
    actors: hardNames,
    paths: hardPaths,
    expressions: hardExpressions,
    times: [now - 86_400_000, now, now - 40 * 86_400_000],
  };
  const right = arbitraryQuery(vocabulary).map((query) => query.text);
  const text = fc.oneof(right, { weight: 2, arbitrary: arbitraryMutatedText(vocabulary) });
  const counts: Record<number, number> = {};
  await checkLaw(someOf(text, 10), { runs: 10 }, async (texts) => {
    const answers = await Promise.all(texts.map((q) => ask('fuzzed', q)));
    for (const [place, { status, body }] of answers.entries()) {
      counts[status] = (counts[status] ?? 0) + 1;
      if (status === 200) continue;
      const [detail] = body.details ?? [];
      expect({ q: texts[place], status, field: detail?.field, message: detail?.message }).toEqual({
        q: texts[place],
        status: 400,
        field: 'q',
        message: expect.stringMatching(/^At position \d+: expected /),
      });
    }
  });
  console.info(`queries over HTTP: ${JSON.stringify(counts)}`);
});
