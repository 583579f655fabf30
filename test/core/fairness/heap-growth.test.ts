import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

test('V8 knows the setting that caps the growth of the heap', () => {
  expect(execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' })).toContain('--heap-growing-percent');
});
