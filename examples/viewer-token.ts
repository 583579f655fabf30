// Shows a customer their part of the history: POST /changelog/{tenant}/viewer-tokens, then the four reads of GET /viewer/{tenant}/…
// Run it with: node examples/viewer-token.ts
// With curl: curl -s "$ANNALS_URL/changelog/demo/viewer-tokens" -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{"q":"entity:order","subject":"c-17"}'
import type { ViewerChange } from '@annals/client';
import { entity } from '@annals/client/query';
import { demoClient } from './annals.ts';
import { setting } from './token.ts';

// On your server, for the customer who is signed in to it.
const annals = demoClient('changelog.viewer_issue');
const { token, expiresIn } = await annals.viewerTokens.create({
  q: entity('order'),
  subject: 'c-17',
  actors: false,
  export: true,
});
console.log(`a token for ${expiresIn} seconds`);

// In the customer's browser.
async function read(path: string, accept = 'application/json'): Promise<Response> {
  const response = await fetch(`${setting('ANNALS_URL')}/viewer/demo/${path}`, {
    headers: { authorization: `Bearer ${token}`, accept },
  });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return response;
}

const { items, totalElements } = (await (await read('changes?ref=true&size=3')).json()) as {
  items: ViewerChange[];
  totalElements: number;
};
for (const { at, type, entityId } of items) console.log(at, type, entityId);
console.log(`${totalElements} changes of orders`);
for (const path of ['histogram?buckets=7', 'facets?field=type', `entries?ref=${items[0]?.ref}`])
  console.log(await (await read(path)).json());
const csv = await (await read('changes', 'text/csv')).text();
console.log(csv.slice(0, 200));
