import { expect, onTestFinished, test } from 'vitest';
import { createSchemaChecker } from '../../src/custom-entities/schema-checker.ts';
import { AnnalsError } from '../../src/errors.ts';

test('1,000 checks wait for the one under way; one more is refused with 503 and Retry-After', async () => {
  const checker = createSchemaChecker();
  onTestFinished(() => checker.close());
  const outcomes = await Promise.allSettled(Array.from({ length: 1_002 }, () => checker.checkSchema('{}')));
  const refused = outcomes.filter(({ status }) => status === 'rejected');
  expect(refused).toHaveLength(1);
  expect(outcomes.at(-1)).toBe(refused[0]);
  expect(refused[0]).toMatchObject({ reason: { type: 'service_unavailable', headers: { 'Retry-After': '1' } } });
  expect(refused[0]?.status === 'rejected' && refused[0].reason).toBeInstanceOf(AnnalsError);
});
