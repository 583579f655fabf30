// Makes, reads, changes and deletes a configuration: POST, GET, PUT and DELETE on
// /configuration/{tenant}/configurations. Run it with: node examples/configuration.ts
import { getToken, setting } from './token.ts';

const url = `${setting('ANNALS_URL')}/configuration/demo/configurations`;
const token = await getToken('configuration.configuration_manage');

await call('POST', url, [
  { key: 'exampleSite', value: { name: 'Main', taxRate: 0.19 }, description: 'What the storefront shows' },
  { key: 'exampleSecret', value: 'not for everybody', secured: true },
]);
await call('GET', `${url}?keys=exampleSite,exampleSecret`);
await call('GET', `${url}/exampleSecret`);
await call('PUT', `${url}/exampleSite`, { key: 'exampleSite', value: { name: 'Main', taxRate: 0.2 }, version: 1 });
await call('DELETE', `${url}/exampleSite`);
await call('DELETE', `${url}/exampleSecret`);

async function call(method: string, address: string, body?: unknown): Promise<void> {
  const response = await fetch(address, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${text}`);
  console.log(method, new URL(address).pathname, response.status, text);
}
