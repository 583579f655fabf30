// Exports change history, waits for it, reads the file, and tidies up. Run it with, for instance:
// node examples/jobs.ts 'entity:product type:update' CSV
import { setTimeout as sleep } from 'node:timers/promises';
import { getToken, setting } from './token.ts';

interface Job {
  id: string;
  status: string;
  metadata: { entries?: number; bytes?: number; error?: { message: string } };
}

const [q = 'entity:order', format = 'NDJSON'] = process.argv.slice(2);
const token = await getToken('ai.agent_manage changelog.changelog_read');
const base = `${setting('ANNALS_URL')}/ai-service/demo/jobs`;

async function call(method: string, path: string, body?: unknown): Promise<Response> {
  const response = await fetch(base + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'x-total-count': 'true' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  console.log(`${method} ${path}: ${response.status}`);
  if (!response.ok) throw new Error(await response.text());
  return response;
}

const { jobId } = (await (await call('POST', '', { type: 'EXPORT', q, format })).json()) as { jobId: string };
let job: Job;
do {
  await sleep(200);
  job = (await (await call('GET', `/${jobId}`)).json()) as Job;
} while (job.status === 'in_progress');
if (job.status !== 'success') throw new Error(job.metadata.error?.message);

const file = await (await call('GET', `/${jobId}/content`)).text();
console.log(`${job.metadata.entries} entries, ${job.metadata.bytes} bytes; the file begins:\n${file.slice(0, 300)}`);

const list = await call('GET', '?sort=metadata.createdAt:DESC&pageSize=5&fields=type,status');
console.log(`${list.headers.get('x-total-count')} jobs; the latest:`, await list.json());
const found = await call('POST', '/search?pageSize=5', { q: 'type:EXPORT status:success metadata.entries:>0' });
console.log(
  'exports that found something:',
  ((await found.json()) as Job[]).map(({ id }) => id),
);

await call('DELETE', `/${jobId}`);
