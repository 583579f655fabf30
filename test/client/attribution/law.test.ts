import pg from 'pg';
import { describe, test } from 'vitest';
import { holdLaw } from './law.ts';
import { clientOf, drivers, useShop } from './shop.ts';

const openShop = useShop();

describe.each(drivers)('with pg %s', (_version, driver) => {
  test('the law: each change has the context of its own query, and the application sees no difference', async () => {
    const shop = await openShop();
    await holdLaw({ shop, open: () => clientOf(driver, shop) });
  });
});

test('the law in pipeline mode', async () => {
  const shop = await openShop();
  await holdLaw({
    shop,
    open: () => clientOf(pg, shop, { pipeline: true }),
    without: ['cursor', 'copy'],
    isPipelined: true,
  });
});
