import { expect, test } from 'vitest';
import { AnnalsError } from '../../../src/core/errors.ts';
import { ThreadPool } from '../../../src/core/fairness/threads.ts';
import { doWork } from '../../../src/core/fairness/work.ts';
import { createSchemaChecker } from '../../../src/tenants/custom-entities/schema-checker.ts';

const checker = createSchemaChecker(new ThreadPool({ size: 2 }), 300);

test('256 checks of a tenant wait for the one under way; one more is refused with 429 and Retry-After', async () => {
  const outcomes = await Promise.allSettled(Array.from({ length: 258 }, () => checker.checkSchema('{}')));
  const refused = outcomes.filter(({ status }) => status === 'rejected');
  expect(refused).toHaveLength(1);
  expect(outcomes.at(-1)).toBe(refused[0]);
  expect(refused[0]).toMatchObject({ reason: { type: 'rate_limit_exceeded', headers: { 'Retry-After': '1' } } });
  expect(refused[0]?.status === 'rejected' && refused[0].reason).toBeInstanceOf(AnnalsError);
});

test('a tenant gets its turn while others have slow checks waiting', async () => {
  // Each level of the document doubles the work, so each of these checks takes its whole time.
  const both = { properties: { x: { $ref: '#/$defs/a' } }, required: ['y'] };
  const slow = JSON.stringify({ $defs: { a: { anyOf: [both, both, both] } }, $ref: '#/$defs/a' });
  const document = `${'{"x":'.repeat(60)}{}${'}'.repeat(60)}`;
  const order: string[] = [];
  const check = (tenant: string, schema: string) =>
    doWork({ tenant }, () => checker.checkDocument(schema, document))
      .catch(() => {})
      .finally(() => order.push(tenant));
  for (const tenant of ['one', 'two', 'three']) for (let count = 0; count < 2; count += 1) void check(tenant, slow);
  await check('bystander', '{"type":"object"}');
  // Each of the three had a turn at most.
  expect(new Set(order).size).toBe(order.length);
  expect(order.at(-1)).toBe('bystander');
});
