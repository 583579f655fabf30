import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { trials } from '../../support/oracle/trials.ts';
import { startTestServer } from '../../support/server/server.ts';

/** How many names of 1,000 characters the expressions are tried on. */
const names = trials(500);
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);

const tokens = new Map<string, string>();

const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
for (const tenant of ['hostile', 'bystander']) {
  tokens.set(tenant, await server.token(tenant));
  const record = createRecorder(server.context.db, tenant, () => now);
  const count = tenant === 'hostile' ? names : 10;
  for (let first = 0; first < count; first += 1_000) {
    await record(
      Array.from({ length: Math.min(1_000, count - first) }, (_, nth) => ({
        identity: randomBytes(16),
        at: now - nth,
        type: 'update' as const,
        entity: 'order',
        entityId: longName(first + nth),
        actor: longName(first + nth),
        related: [],
        paths: '{}',
      })),
    );
  }
}

/** What backtracks longest: one letter over and over, and at the end something else. */
function longName(nth: number): string {
  const end = `!${nth}`;
  return 'a'.repeat(1_000 - end.length) + end;
}

async function ask(tenant: string, q: string) {
  const parameters = new URLSearchParams({ q, size: '1' });
  const response = await server.call(`/changelog/${tenant}/changelogs?${parameters}`, {
    token: tokens.get(tenant) ?? '',
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

const hostile = [
  '(a+)+$',
  '(a|a)*$',
  '(a*)*b',
  '([a-z]+)*[0-9]$',
  '[a-z]{0,1000}[0-9]$',
  '(.*a){20}!',
  '(a?){100}a{100}$',
  '^(((a*)*)*)*$',
  '(?i)(A+)+B',
  '(x+x+)+y',
  '.*.*.*.*.*=.*',
  '(\\pL+)+\\d{4,}$',
];

describe(`hostile regular expressions over ${names} names of 1,000 characters`, () => {
  test.each(hostile)('~%s is answered within the budget or is 400, while others are answered', async (source) => {
    for (const q of [`actor:~"${source}"`, `entity:order entityId:~"${source}"`]) {
      let done = false;
      const answer = ask('hostile', q).finally(() => {
        done = true;
      });
      let meanwhile = 0;
      while (!done) {
        expect((await ask('bystander', 'entity:order')).body).toMatchObject({ totalElements: 10 });
        meanwhile += 1;
      }
      const { status, body } = await answer;
      expect(meanwhile).toBeGreaterThan(0);
      if (status === 200) expect(body.totalElements).toBeLessThanOrEqual(names);
      else {
        expect({ status, body }).toMatchObject({
          status: 400,
          body: {
            type: 'validation_violation',
            details: [{ field: 'q', message: expect.stringMatching(/^At position \d+: expected a regular/) }],
          },
        });
      }
    }
  });

  test('what is within the budget is exact', async () => {
    const ending = Array.from({ length: names }, (_, nth) => nth).filter((nth) => nth % 10 === 7).length;
    for (const q of ['actor:~7$', 'entity:order entityId:~7$', 'actor:*7', 'entity:order entityId:*7']) {
      expect((await ask('hostile', q)).body).toMatchObject({ totalElements: ending });
    }
  });

  test('the expressions of one query share one budget', async () => {
    const q = Array.from({ length: 40 }, (_, nth) => `actor:~"[a-z]{0,60}${nth}$"`).join(' ');
    expect((await ask('hostile', q)).body).toMatchObject({ status: 400, details: [{ field: 'q' }] });
  });
});
