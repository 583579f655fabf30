import { expect, test } from 'vitest';
import { createKeyedMutex } from '../../../src/core/concurrency/keyed-mutex.ts';

test('work of one key goes on one after another, in the order it was asked for', async () => {
  const oneAtATime = createKeyedMutex();
  const first = Promise.withResolvers<void>();
  const begun: string[] = [];
  const all = ['a', 'b'].map((name) =>
    oneAtATime('session', async () => {
      begun.push(name);
      await first.promise;
    }),
  );
  await new Promise((resolve) => setImmediate(resolve));
  expect(begun).toEqual(['a']);
  first.resolve();
  await Promise.all(all);
  expect(begun).toEqual(['a', 'b']);
});

test('work of another key does not wait', async () => {
  const oneAtATime = createKeyedMutex();
  const never = Promise.withResolvers<void>();
  const blocked = oneAtATime('session', () => never.promise);
  expect(await oneAtATime('other', async () => 'done')).toBe('done');
  never.resolve();
  await blocked;
});

test('work that throws does not stop the work after it', async () => {
  const oneAtATime = createKeyedMutex();
  const failed = oneAtATime('session', () => Promise.reject(new Error('it failed')));
  const next = oneAtATime('session', async () => 'done');
  await expect(failed).rejects.toThrow('it failed');
  expect(await next).toBe('done');
});
