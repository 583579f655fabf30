import { expect, test } from 'vitest';
import { troubleOf } from '../src/overview/trouble.ts';

test('disabled agents come first, then those with most failures, each cause once', () => {
  const failed = [
    { triggerAgentId: 'b', cause: 'timeout' as const },
    { triggerAgentId: 'c', cause: 'timeout' as const },
    { triggerAgentId: 'c', cause: 'timeout' as const },
    { triggerAgentId: 'c' },
  ];
  expect(troubleOf([{ id: 'a', disabledReason: 'Refused' }], failed)).toEqual([
    { id: 'a', disabledReason: 'Refused', failures: 0, causes: [] },
    { id: 'c', disabledReason: undefined, failures: 3, causes: ['timeout'] },
    { id: 'b', disabledReason: undefined, failures: 1, causes: ['timeout'] },
  ]);
});
