import { expect, test } from 'vitest';
import { ruledDocument } from '../../../src/recording/mapping/history-changes.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';

const mapping = readMapping(
  JSON.stringify({
    version: 1,
    tenant: { value: 'acme' },
    tables: {
      'public.orders': { entity: 'order', mask: ['card'], ignore: ['etag'] },
      'public.old_orders': { entity: 'order', mask: ['payload.secret'], truncate: 'ignore', snapshot: false },
    },
    entities: { order: { mask: ['phone'] } },
  }),
);

test('a document of the history follows the rules of its entity and of each table that has it', () => {
  const document = '{"id":7,"card":"4111","etag":1,"phone":null,"payload":{"secret":1.10,"a":1.10}}';
  expect(ruledDocument(mapping, 'order', document)).toBe(
    '{"id":7,"card":"********","phone":null,"payload":{"secret":"********","a":1.10}}',
  );
});

test('without rules it stays as it is, digit by digit', () => {
  const document = '{"card": 1.10}';
  expect(ruledDocument(mapping, 'customer', document)).toBe(document);
  expect(ruledDocument(undefined, 'order', document)).toBe(document);
});
