// Generates a completion: POST /ai-service/{tenant}/completions, and shows what is left of the quota of the shared
// token: GET /ai-service/{tenant}/completions/usage. Run it with, for instance:
// node examples/completion.ts 'Write one sentence about change histories.'
import { randomUUID } from 'node:crypto';
import { getToken, setting } from './token.ts';

const [content = 'Write one sentence about change histories.'] = process.argv.slice(2);
const url = `${setting('ANNALS_URL')}/ai-service/demo/completions`;
const headers = {
  authorization: `Bearer ${await getToken('ai.completion_manage')}`,
  'content-type': 'application/json',
  // With it the call may be repeated, whatever went wrong: its tokens are spent once.
  'idempotency-key': randomUUID(),
};
const messages = [
  { role: 'SYSTEM', content: 'You answer in plain words.' },
  { role: 'USER', content },
];

const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ id: 'example', messages }) });
console.log(response.status, await response.text());
const usage = await fetch(`${url}/usage`, { headers });
console.log(await usage.text());
