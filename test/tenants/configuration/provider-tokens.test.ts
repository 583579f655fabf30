import { afterEach, expect, test } from 'vitest';
import { createConfiguration } from '../../../src/tenants/configuration/service.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { startTestServer } from '../../support/server/server.ts';
import { recordStatements } from '../../support/server/statements.ts';
import { startVendor } from '../../support/vendor/vendor-server.ts';

let tenants = 0;

const vendor = closeAfterAll(await startVendor());
const server = closeAfterAll(
  await startTestServer({
    environment: { OPENAI_BASE_URL: vendor.baseUrl, ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared' },
  }),
);

afterEach(() => vendor.behave({ kind: 'answer' }));

async function newTenant() {
  tenants += 1;
  const tenant = `tenant${tenants}`;
  const token = await server.token(tenant);
  const send = async (method: string, path: string, body?: unknown, by = server) => {
    const response = await by.call(path.replace('TENANT', tenant), {
      token,
      method,
      json: body,
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
  };
  const base = '/configuration/TENANT/configurations';
  return {
    tenant,
    base,
    send,
    set: (key: string, value: unknown, more: object = {}) => send('POST', base, [{ key, value, ...more }]),
    complete: (by = server) => {
      const messages = [{ role: 'USER', content: 'Hello' }];
      return send('POST', '/ai-service/TENANT/completions', { messages }, by);
    },
  };
}

const usedToken = () => vendor.requests.at(-1)?.headers.authorization;

test('openAiApiToken is always secured, and serves where providerApiToken is not set', async () => {
  const { base, send, set, complete } = await newTenant();
  expect((await set('openAiApiToken', 'with blank')).body.details).toEqual([
    { field: '0.value', message: 'must be 1 to 4096 visible ASCII characters without blanks' },
  ]);
  const made = await set('openAiApiToken', 'sk-family', { secured: false, restricted: false, readOnly: false });
  expect(made.body).toEqual([{ key: 'openAiApiToken', value: '********', version: 1, secured: true }]);
  expect((await complete()).status).toBe(200);
  expect(usedToken()).toBe('Bearer sk-family');
  await set('providerApiToken', 'sk-own');
  await complete();
  expect(usedToken()).toBe('Bearer sk-own');
  await send('DELETE', `${base}/providerApiToken`);
  await complete();
  expect(usedToken()).toBe('Bearer sk-family');
  await send('DELETE', `${base}/openAiApiToken`);
  await complete();
  expect(usedToken()).toBe('Bearer sk-shared');
});

test('a refused token names the item that it is from', async () => {
  const { set, complete } = await newTenant();
  vendor.behave({ kind: 'status', status: 401 });
  for (const key of ['openAiApiToken', 'providerApiToken']) {
    await set(key, 'sk-refused');
    expect(await complete()).toMatchObject({
      status: 400,
      body: { details: [{ field: key, message: 'is refused by the provider' }] },
    });
  }
});

test('calls that begin together read the keys once, and a change has effect in every process once it is answered', async () => {
  const { pool, db, sealer } = server.context;
  const { tenant } = await newTenant();
  const by = { tenant, actor: 'test' };
  const [writer, reader] = [1, 2].map(() =>
    createConfiguration({ pool, db, sealer, now: Date.now, refusesAddress: () => false }),
  );
  if (writer === undefined || reader === undefined) throw new Error('there are two');
  const item = (value: string) => ({ value, json: JSON.stringify(value), size: { bytes: 10, values: 1, levels: 0 } });
  const keyOf = async () => (await reader.readProviderKeys(tenant)).openai?.token;
  expect(await keyOf()).toBeUndefined();
  await writer.create(by, [{ key: 'providerApiToken', ...item('sk-0') }]);
  for (let change = 0; change < 3; change += 1) {
    expect(await keyOf()).toBe(`sk-${change}`);
    await writer.replace(by, 'providerApiToken', item(`sk-${change + 1}`));
  }
  const statements = recordStatements(...pool.pools);
  await Promise.all([keyOf(), keyOf(), keyOf()]);
  expect(statements.filter(({ name }) => name === 'configuration_sealed')).toHaveLength(1);
  await writer.remove(by, 'providerApiToken');
  expect(await keyOf()).toBeUndefined();
});

test('restricted and readOnly: false is accepted, true is 400 with what to write instead', async () => {
  const { base, send, set } = await newTenant();
  expect((await set('site', 'x', { restricted: false, readOnly: false })).status).toBe(201);
  const put = (more: object) => send('PUT', `${base}/site`, { value: 'y', ...more });
  expect((await put({ restricted: false, readOnly: false })).status).toBe(200);
  for (const name of ['restricted', 'readOnly']) {
    const message = expect.stringMatching(/^must be false or left out: /);
    const details = (field: string) => ({ status: 400, body: { details: [{ field, message }] } });
    expect(await set('other', 'x', { [name]: true })).toMatchObject(details(`0.${name}`));
    expect(await put({ [name]: true })).toMatchObject(details(name));
  }
});
