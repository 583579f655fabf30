import { expect, test } from 'vitest';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { changesOfOutbox } from '../../../src/sources/outbox/outbox-changes.ts';
import type { OutboxRow } from '../../../src/sources/outbox/outbox-rows.ts';

const tables = { 'shop.orders': { entity: 'order', id: ['id'] } };

/** The tenant under which a row is kept that could not be written. */
function tenantOfFault(tenant: object, row: Partial<OutboxRow>): string | undefined {
  const fault = {
    number: '1',
    at: 0,
    transaction: '7',
    source: null,
    before: null,
    after: null,
    document: null,
    actor: null,
    context: null,
    who: null,
    transactionActor: null,
    isOfGroup: false,
    fault: 'the change cannot be written (SQLSTATE 54000)',
  };
  const mapping = readMapping(JSON.stringify({ version: 1, tenant, tenants: { north: 'acme' }, tables }));
  const watch = { tables: new Map(), look: async () => {}, isDue: false, warnOfLaterColumns: () => {} };
  const [change] = changesOfOutbox([{ ...fault, ...row }], { mapping, watch, outbox: 'o', server: '', warn: () => {} });
  if (change?.mapped.kind !== 'rejected') throw new Error('the row was not rejected');
  return change.mapped.tenant;
}

test.each([
  ['a row of a table', { value: 'acme' }, { source: 'shop.orders' }, 'acme'],
  ['a row of a table whose schema is the tenant', { schema: true }, { source: 'shop.orders' }, 'shop'],
  ['a row whose column would tell', { column: 'org' }, { source: 'shop.orders' }, undefined],
  ['a row of a table that is mapped no longer', { schema: true }, { source: 'shop.gone' }, undefined],
  ['a change by hand', { value: 'acme' }, {}, 'acme'],
  ['a change by hand of another tenant', { value: 'acme' }, { document: '{"tenant":"beta","entity":"x"}' }, 'beta'],
  ['a change by hand with a translated tenant', { column: 'org' }, { document: '{"tenant":"north"}' }, 'acme'],
  ['a change by hand without a tenant', { column: 'org' }, { document: '{"entity":"x"}' }, undefined],
])('of what could not be written the tenant is kept where it is known: %s', (_what, tenant, row, expected) => {
  expect(tenantOfFault(tenant, row)).toBe(expected);
});
