import { setContext } from '@annals/client/context';
import { expect, onTestFinished, test } from 'vitest';
import { ada, asAda, asBen, ben, recorded, type Shop } from '../shop.ts';
import type { OpenOrm, Orm, Transaction } from './orm.ts';

/** The tests that a library passes as it does in an application. */
export function testOrm(openShop: () => Promise<Shop>, open: OpenOrm): void {
  async function openOrm(): Promise<{ shop: Shop; orm: Orm }> {
    const shop = await openShop();
    const orm = await open(shop.url);
    onTestFinished(async () => void (await orm.close()));
    return { shop, orm };
  }

  test('a write outside of a transaction is by the context of its call', async () => {
    const { shop, orm } = await openOrm();
    await asAda(async () => {
      await orm.insert(1);
      await orm.raw(2);
      await orm.read(1);
      await orm.update(1, 'a');
    });
    await orm.insert(3);
    await asBen(() => orm.updateAll(1, 3, 'b'));
    expect(await recorded(shop)).toEqual([
      ...[1, 1, 1].map((item, index) => [item, index < 2 ? ada : ben]),
      ...[ada, ben].map((who) => [2, who]),
      ...[null, ben].map((who) => [3, who]),
    ]);
  });

  test('a transaction, its savepoints, and what they roll back', async () => {
    const { shop, orm } = await openOrm();
    const inTransaction = async (transaction: Transaction) => {
      await transaction.read(1);
      await transaction.insert(1);
      await asBen(() => transaction.nested(async (savepoint) => void (await savepoint.insert(2))));
      const failing = transaction.nested(async (savepoint) => {
        await asBen(() => savepoint.insert(3));
        throw new Error('taken back');
      });
      await expect(failing).rejects.toThrow('taken back');
      await transaction.raw(4);
      setContext({ context: { reason: 'r' } });
      await transaction.updateAll(1, 2, 'b');
    };
    await asAda(() => orm.transaction(inTransaction));
    const withReason = { ...ada, context: { reason: 'r' } };
    expect(await recorded(shop)).toEqual([
      ...[ada, withReason].map((who) => [1, who]),
      ...[ben, withReason].map((who) => [2, who]),
      [4, ada],
    ]);
    const rolledBack = asBen(() =>
      orm.transaction(async (transaction) => {
        await transaction.insert(5);
        throw new Error('taken back');
      }),
    );
    await expect(rolledBack).rejects.toThrow('taken back');
    await orm.transaction(async (transaction) => void (await transaction.insert(6)));
    expect((await shop.byTriggers()).map(({ item, who }) => [item, who])).toEqual([[6, null]]);
    expect((await shop.byCapture()).map(({ item, who }) => [item, who])).toEqual([[6, null]]);
  });

  test('an error is the application’s own, and leaves nothing to what follows', async () => {
    const { shop, orm } = await openOrm();
    await asAda(() => orm.insert(1));
    expect(await asBen(() => orm.raw(1)).catch(sqlStateOf)).toBe('23505');
    await orm.insert(2);
    const inTransaction = asBen(() =>
      orm.transaction(async (transaction) => {
        await transaction.insert(3);
        await transaction.raw(1);
      }),
    );
    expect(await inTransaction.catch(sqlStateOf)).toBe('23505');
    await asAda(() => orm.insert(4));
    expect(await recorded(shop)).toEqual([
      [1, ada],
      [2, null],
      [4, ada],
    ]);
  });

  test('concurrent requests over 4 connections never mix', async () => {
    const { shop, orm } = await openOrm();
    const contexts = [ada, ben, null];
    const request = async (index: number) => {
      await orm.read(index);
      await orm.insert(index);
      await orm.transaction(async (transaction) => {
        await transaction.insert(100 + index);
        await transaction.nested(async (savepoint) => void (await savepoint.update(100 + index, 'a')));
      });
      await orm.updateAll(index, index, 'b');
    };
    const indexes = Array.from({ length: 24 }, (_, index) => index);
    await Promise.all(
      indexes.map((index) => [asAda, asBen, <T>(fn: () => T) => fn()][index % 3]?.(() => request(index))),
    );
    const twice = (item: number) => [0, 1].map(() => [item, contexts[(item % 100) % 3]]);
    expect(await recorded(shop)).toEqual([
      ...indexes.flatMap(twice),
      ...indexes.flatMap((index) => twice(100 + index)),
    ]);
  });
}

/** Of the server's error, inside of those of the library. */
function sqlStateOf(error: unknown): unknown {
  if (typeof error !== 'object' || error === null) return undefined;
  const member = (key: string): unknown => Reflect.get(error, key);
  const inner = ['cause', 'original', 'meta', 'driverAdapterError'].map((key) => sqlStateOf(member(key)));
  return inner.find((found) => found !== undefined) ?? member('originalCode') ?? member('code');
}
