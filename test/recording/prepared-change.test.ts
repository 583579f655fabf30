import { expect, test } from 'vitest';
import type { Change, ChangeType } from '../../src/recording/change.ts';
import { maxOwnPathsBytes, preparedChange } from '../../src/recording/prepared-change.ts';

const members = 100;
/** What each path of these documents adds to the key above it: `".00":{"after":0}` and a comma. */
const around = '".00":{"after":0},'.length;

/** A document of 100 members below one key, which each of their paths repeats. */
function documentWithKey(length: number): string {
  const inner = Array.from({ length: members }, (_, index) => `"${String(index).padStart(2, '0')}":0`);
  return `{"${'k'.repeat(length)}":{${inner.join()}}}`;
}

async function pathsOf(type: ChangeType, document: string): Promise<string> {
  const side = type === 'delete' ? { before: document } : { after: document };
  const change = await preparedChange({ type, entity: 'a', entityId: 'b', at: 1, actor: 'Jane', ...side });
  return (change as Change).paths;
}

test('paths of an own document have at most 16 MiB; beyond, 413, but a delete still goes through', async () => {
  const longest = Math.floor((maxOwnPathsBytes - 1) / members) - around;
  const paths = await pathsOf('create', documentWithKey(longest));
  expect(paths.length).toBeLessThanOrEqual(maxOwnPathsBytes);
  expect(paths.length).toBeGreaterThan(maxOwnPathsBytes - 2 * members);
  await expect(pathsOf('create', documentWithKey(longest + 1))).rejects.toMatchObject({
    type: 'payload_too_large',
    message: expect.stringContaining('16 MiB'),
  });
  expect((await pathsOf('delete', documentWithKey(longest + 1))).length).toBeGreaterThan(maxOwnPathsBytes);
});
