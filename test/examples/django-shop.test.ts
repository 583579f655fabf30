import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { startCapture, useCaptureDatabases } from '../sources/capture/captured.ts';
import { attributionsOf } from '../sources/who.ts';
import { ownPort } from '../support/server/own-port.ts';
import { eventually } from '../support/server/patience.ts';
import { fetchedPackages, findPython } from '../support/server/python-program.ts';

const root = join(import.meta.dirname, '..', '..');
const shop = join(root, 'examples', 'django-shop');
const python = findPython() ?? 'python3';
const mapping = JSON.parse(readFileSync(join(shop, 'mapping.json'), 'utf8'));
const databases = useCaptureDatabases();

const setUp = `
from django.contrib.auth.models import User
from shop.models import Product
for name in ("jane", "zoe"): User.objects.create_superuser(name, password=f"{name}'s password")
Product.objects.create(name="Desk lamp", price="39.90", stock=1)
Product.objects.create(name="Chair", price="120.00", stock=5)`;

/** A signed-in person's browser. */
async function signIn(baseUrl: string, name: string) {
  const page = await fetch(`${baseUrl}/admin/login/`);
  const csrf = ({ headers }: Response) => /csrftoken=([^;]+)/.exec(headers.getSetCookie().join())?.[1] ?? '';
  let token = csrf(page);
  let session = '';
  const post = async (path: string, members: Record<string, string>) =>
    await fetch(`${baseUrl}${path}`, {
      method: 'POST',
      redirect: 'manual',
      headers: { cookie: `csrftoken=${token}; sessionid=${session}`, 'x-csrftoken': token },
      body: new URLSearchParams(members),
    });
  const answer = await post('/admin/login/', { username: name, password: `${name}'s password`, next: '/admin/' });
  expect(answer.status).toBe(302);
  token = csrf(answer) || token;
  session = /sessionid=([^;]+)/.exec(answer.headers.getSetCookie().join())?.[1] ?? '';
  return post;
}

test('the shop of Django: requests, the admin, a bulk update and a command have who made them', async () => {
  const source = databases.openSource();
  const history = databases.openHistory();
  const environment = {
    ...process.env,
    DATABASE_URL: source.url,
    PYTHONDONTWRITEBYTECODE: '1',
    PYTHONPATH: [join(root, 'clients', 'python'), fetchedPackages('frameworks')].filter(Boolean).join(':'),
  };
  const manage = async (...args: string[]) =>
    await promisify(execFile)(python, ['manage.py', ...args], { cwd: shop, env: environment });
  await manage('migrate');
  await manage('shell', '-c', setUp);
  const choice = { snapshot: true, alter: true, identity: 'full' } as const;
  await startCapture({ source, history, mapping, choice }).running;

  const port = await ownPort();
  const server = spawn(python, ['manage.py', 'runserver', '--noreload', `127.0.0.1:${port}`], {
    cwd: shop,
    env: environment,
    stdio: 'ignore',
  });
  onTestFinished(async () => {
    server.kill('SIGKILL');
    if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
  });
  const baseUrl = `http://127.0.0.1:${port}`;
  await eventually(async () => (await fetch(`${baseUrl}/admin/login/`)).status).toBe(200);
  const [jane, zoe] = await Promise.all([signIn(baseUrl, 'jane'), signIn(baseUrl, 'zoe')]);
  const placed = await Promise.all([
    jane('/orders/', { product: '1', quantity: '1', customer: 'Acme Ltd' }),
    zoe('/orders/', { product: '2', quantity: '2' }),
  ]);
  expect(placed.map(({ status }) => status)).toEqual([201, 201]);
  expect((await zoe('/reduced-prices/', { percent: '10' })).status).toBe(200);
  const added = await jane('/admin/shop/product/add/', { name: 'Sofa', price: '700', stock: '2' });
  expect(added.status).toBe(302);
  await manage('restock');
  await source.pool.query(`update shop_product set stock = 3 where name = 'Sofa'`);

  const [janes, zoes] = ['jane (1)', 'zoe (2)'];
  await eventually(async () =>
    (await attributionsOf(history, 'product'))
      .slice(2)
      .map(({ entityId, who }) => `${entityId} ${who}`)
      .sort(),
  ).toEqual(
    [
      `1 ${janes} for Acme Ltd`,
      `2 ${zoes}`,
      `1 ${zoes}`,
      `2 ${zoes}`,
      `3 ${janes}`,
      '1 nightly restock',
      '3 unknown',
    ].sort(),
  );
  const changes = [...(await attributionsOf(history, 'order')), ...(await attributionsOf(history, 'product'))];
  const [order] = changes.filter(({ entity, who }) => entity === 'order' && who === `${janes} for Acme Ltd`);
  // The order and the stock are of one request.
  expect(changes.filter(({ correlationId }) => correlationId === order?.correlationId)).toHaveLength(2);
});
