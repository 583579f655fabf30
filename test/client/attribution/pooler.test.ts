import { runWithContext } from '@annals/client/context';
import { attribute } from '@annals/client/pg';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { openPooler } from '../../support/server/pgbouncer.ts';
import { holdLaw } from './law.ts';
import { clientOf, poolOf, recorded, useShop } from './shop.ts';

const openShop = useShop();

test('behind a pooler in transaction mode each change has the context of its own caller', async () => {
  const shop = await openShop();
  const pooler = await openPooler(shop.url, 2);
  onTestFinished(pooler.stop);
  const pool = attribute(poolOf(pg, pooler, { max: 8 }));
  await Promise.all(
    Array.from({ length: 120 }, async (_, index) => {
      const run = async () => {
        if (index % 4 === 0) await pool.query(`insert into items values (${index})`);
        else if (index % 4 === 1) await pool.query('insert into items values ($1)', [index]);
        else {
          const client = await pool.connect();
          await client.query('begin');
          await client.query(`insert into items values (${index})`);
          await client.query(index % 4 === 2 ? 'commit' : 'rollback');
          client.release();
        }
      };
      await (index % 3 === 0 ? run() : runWithContext({ actor: `Person ${index}` }, run));
    }),
  );
  const indexes = Array.from({ length: 120 }, (_, index) => index).filter((index) => index % 4 !== 3);
  expect(await recorded(shop)).toEqual(
    indexes.map((index) => [index, index % 3 === 0 ? null : { actor: `Person ${index}` }]),
  );
});

test('the law, behind a pooler in transaction mode', async () => {
  const shop = await openShop();
  const pooler = await openPooler(shop.url, 2);
  onTestFinished(pooler.stop);
  await holdLaw({ shop, open: () => clientOf(pg, pooler), without: ['named'] });
});
