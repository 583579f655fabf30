import { expect, test } from 'vitest';
import { Stop } from '../../../src/core/stop-signal.ts';
import { type AlertContent, alertMail } from '../../../src/delivery/alerts/alert-mail.ts';
import { createEmailTarget } from '../../../src/delivery/alerts/email-target.ts';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import { deliveredChange } from '../../support/server/delivered-changes.ts';

const noon = Date.UTC(2026, 10, 23, 12);

function tell(overrides: Partial<AlertContent> = {}): { subject: string; text: string } {
  const { alert = { after: { position: 0, fingerprint: 0 }, count: 1, from: noon, to: noon + 5_000 }, ...others } =
    overrides;
  const changes = [deliveredChange(1, { paths: '{"price":{"before":39.90,"after":34.90}}' })];
  const usual = { tenant: 'shop', name: 'Prices', q: 'entity:product', changes, withValues: false };
  return alertMail({ ...usual, baseUrl: 'https://history.example/annals', alert, ...others });
}

test('an alert reports the number of changes, the period and the first ones, with values only if enabled', () => {
  const { subject, text } = tell();
  expect(subject).toBe('Annals: 1 change of product p-1, alert "Prices"');
  expect(text).toContain('- 2026-11-23T12:00:00.001Z update product p-1, by Jane Doe\n    price\n');
  expect(text).not.toContain('39.90');
  expect(tell({ withValues: true }).text).toContain('    price: 39.90 → 34.90\n');
});

test('an alert that lists only the first of its changes says so', () => {
  const changes = [1, 2, 3, 4, 5].map((position) => deliveredChange(position));
  const { subject, text } = tell({
    changes,
    alert: { after: { position: 0, fingerprint: 0 }, count: 7, from: noon, to: noon + 9 },
  });
  expect(subject).toBe('Annals: 7 changes of product p-1 and others, alert "Prices"');
  expect(text).toContain('The first 5:');
  expect(text).toContain('from 2026-11-23T12:00:00.000Z to 2026-11-23T12:00:00.009Z');
  expect(text.match(/^- /gm)).toHaveLength(5);
});

test.each(['entity:product', '', 'compoundLogicalQuery:((type:create) OR (type:update))', ' actor:"a b" '])(
  'its link leads into the console, behind the path of the public address, at the query %j and the time',
  (q) => {
    const [link = ''] = /https:\S+/.exec(tell({ q }).text) ?? [];
    const url = new URL(link);
    expect(`${url.origin}${url.pathname}`).toBe('https://history.example/annals/console/history');
    const query = url.searchParams.get('q') ?? '';
    expect(query).toBe(`${q.trim()} occurredAt:(>="2026-11-23T12:00:00.000Z" AND <="2026-11-23T12:00:05.000Z")`.trim());
    parseQuery(query, changelogDialect);
  },
);

test('without a public address it quotes the query instead of a link', () => {
  const { text } = tell({ baseUrl: undefined });
  expect(text).not.toContain('http');
  expect(text).toContain('entity:product occurredAt:(>=');
});

test('nothing of the history begins a line of its own, turns the direction of the text, or is without end', () => {
  const evil = 'a\r\n\r\nClick http://evil.example\u2028b\u202ec\u0007';
  const changes = [
    deliveredChange(1, {
      entity: evil,
      entityId: `${evil}${'x'.repeat(10_000)}`,
      paths: JSON.stringify({ [evil]: { before: evil, after: 'y'.repeat(10_000) } }),
    }),
  ];
  const { subject, text } = tell({ changes, name: evil, withValues: true });
  expect(subject).not.toMatch(/[\p{Cc}\u2028\u202e]/u);
  expect(text).not.toMatch(/^\s*Click/m);
  expect(text).not.toMatch(/[\r\p{Zl}\u202e]/u);
  expect(text.length).toBeLessThan(3_000);
});

test('subject and text name a document by its name where it has one', () => {
  const named = (position: number, document: string) => {
    const change = deliveredChange(position, { document });
    return { ...change, text: JSON.stringify({ ...JSON.parse(change.text), name: 'Blue\r\nchair' }) };
  };
  const alert = { after: { position: 0, fingerprint: 0 }, count: 2, from: noon, to: noon };
  const { subject, text } = tell({ changes: [named(1, 'a'), named(2, 'a')], alert });
  expect(subject).toBe('Annals: 2 changes of product "Blue chair", alert "Prices"');
  expect(text).toContain('update product "Blue chair" (p-1), by Jane Doe\n');
  expect(tell({ changes: [named(1, 'a'), named(2, 'b')], alert }).subject).toContain('"Blue chair" and others,');
  // The database was restored, and the changes are gone.
  expect(tell({ changes: [], alert }).subject).toBe('Annals: 2 changes, alert "Prices"');
});

test('a change with many paths shows ten of them and how many more', () => {
  const paths = JSON.stringify(Object.fromEntries(Array.from({ length: 12 }, (_none, index) => [`p${index}`, {}])));
  const { text } = tell({ changes: [deliveredChange(1, { paths })] });
  expect(text).toContain('    p9\n    and 2 more\n');
  expect(text).not.toContain('p10');
});

test('of a list of objects it tells what was added, removed, moved and changed, with every digit', () => {
  const paths =
    '{"items":{"before":[{"sku":"cup","n":1.10,"x":1},{"sku":"jug","n":2},{"sku":"mill","n":3},{"sku":"lid","n":4}],' +
    '"after":[{"sku":"lid","n":4},{"sku":"cup","n":1.1,"x":1},{"sku":"mill","n":3},{"sku":"t\\u202ea","n":9007199254740993}]}}';
  const changes = [deliveredChange(1, { paths })];
  expect(tell({ changes, withValues: true }).text).toContain(
    [
      '    items:',
      '      Moved 4 → 1: sku "lid"',
      '      Changed 2: sku "cup", n 1.10 → 1.1',
      '      Removed 2: sku "jug", n 2',
      '      Added 4: sku "t\\u202ea", n 9007199254740993',
      '',
    ].join('\n'),
  );
  expect(tell({ changes }).text).toContain('    items\n');
});

test('a list has ten lines and says how many more, one of 501 elements stays JSON', () => {
  const rowsOf = (count: number) => {
    const after = `[${Array.from({ length: count }, (_none, index) => `{"id":${index}}`).join(',')}]`;
    const changes = [deliveredChange(1, { paths: `{"items":{"after":${after}}}` })];
    const { text } = tell({ changes, withValues: true });
    return { added: text.match(/^ {6}Added \d+: id \d+$/gm)?.length ?? 0, more: /and \d+ more/.exec(text)?.[0] };
  };
  expect([rowsOf(10), rowsOf(11)]).toEqual([
    { added: 10, more: undefined },
    { added: 10, more: 'and 1 more' },
  ]);
  expect([rowsOf(500), rowsOf(501)]).toEqual([
    { added: 10, more: 'and 490 more' },
    { added: 0, more: undefined },
  ]);
  const mixed = [deliveredChange(1, { paths: '{"items":{"before":[],"after":[{"a":1},2]}}' })];
  expect(tell({ changes: mixed, withValues: true }).text).toContain('    items: [] → [{"a":1},2]\n');
});

test('a sample where e-mails wait is a failure that says why', async () => {
  const sending = { tenant: 'shop', subscription: 'prices', name: 'Prices', keys: [], hide: [], signal: new Stop() };
  const target = createEmailTarget({ send: async () => undefined, baseUrl: undefined, now: () => noon });
  const outcome = await target.test({ ...sending, target: { type: 'email', to: 'jane@shop.example' } });
  expect(outcome).toEqual({ outcome: 'failed', error: expect.stringContaining('SMTP_URL') });
});

test('an alert names who made a change as far as its subscription shows it', () => {
  const by = (who: object) => {
    const [change] = [deliveredChange(1)];
    const { actor: _name, ...entry } = JSON.parse(change.text) as Record<string, unknown>;
    return /update product p-1.*/.exec(
      tell({ changes: [{ ...change, text: JSON.stringify({ ...entry, ...who }) }] }).text,
    )?.[0];
  };
  const actor = 'Jane Doe';
  expect(by({})).toBe('update product p-1');
  expect(by({ actor, actorId: 'u-17' })).toBe('update product p-1, by Jane Doe (u-17)');
  const acme = by({ actor, actorId: 'u-17', onBehalfOf: { name: 'Acme Ltd', id: 'c-1' } });
  expect(acme).toBe('update product p-1, by Jane Doe (u-17) on behalf of Acme Ltd (c-1)');
  expect(by({ actor, onBehalfOf: { id: 'c-1\r\nx' } })).toBe('update product p-1, by Jane Doe on behalf of c-1 x');
});
