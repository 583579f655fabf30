import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { startTestServer } from '../../support/server/server.ts';

const now = Date.UTC(2026, 8, 15, 10, 11, 12);

const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));

test('a page of more text than is sent at once arrives whole', async () => {
  const tenant = 'acme';
  const token = await server.token(tenant, { scope: 'changelog.changelog_read' });
  const lengths = [10, 2_000_000, 3_000_000, 20, 4_000_000];
  const record = createRecorder(server.context.db, tenant, () => now);
  for (const [place, length] of lengths.entries()) {
    const paths = JSON.stringify({ text: { after: 'ß'.repeat(length / 2) } });
    const change = { type: 'create', entity: 'order', entityId: String(place), actor: 'Jane', related: [] } as const;
    await record([{ ...change, identity: randomBytes(16), at: now - 1 - place, paths }]);
  }
  const answer = await server.call(`/changelog/${tenant}/changelogs?size=100`, { token });
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  const body = (await answer.json()) as { items: { paths: { text: { after: string } } }[]; totalElements: number };
  expect(body.items.map((item) => item.paths.text.after.length * 2)).toEqual(lengths);
  expect(body.totalElements).toBe(lengths.length);
});
