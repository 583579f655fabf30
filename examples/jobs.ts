// Exports change history by a job, fetches its file, finds the job among the others and deletes it: every operation on
// /ai-service/{tenant}/jobs. Run it with, for instance: node examples/jobs.ts 'entity:coupon'
import { setTimeout as sleep } from 'node:timers/promises';
import { getToken, setting } from './token.ts';

interface Job {
  id: string;
  type: string;
  status: string;
  metadata: { entries?: number; bytes?: number; error?: { message: string } };
}

const [q = 'entity:coupon'] = process.argv.slice(2);
// An export shows change history, so it needs a changelog scope besides.
const token = await getToken('ai.agent_manage changelog.changelog_read');
const base = `${setting('ANNALS_URL')}/ai-service/demo/jobs`;

async function call(method: string, path: string, body?: unknown): Promise<Response> {
  const response = await fetch(base + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'x-total-count': 'true' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const total = response.headers.get('x-total-count');
  console.log(`${method} ${path}: ${response.status}${total === null ? '' : `, ${total} in all`}`);
  if (!response.ok) throw new Error(await response.text());
  return response;
}

const { jobId } = (await (await call('POST', '', { type: 'EXPORT', q, format: 'NDJSON' })).json()) as { jobId: string };
let job: Job;
do {
  await sleep(250);
  job = (await (await call('GET', `/${jobId}`)).json()) as Job;
} while (job.status === 'in_progress');
console.log(`  ${job.status}, ${job.metadata.entries} entries, ${job.metadata.bytes} bytes`);

const file = await (await call('GET', `/${jobId}/content`)).text();
console.log(`  ${file.slice(0, file.indexOf('\n') + 1).slice(0, 160)}`);
for (const found of [
  await call('GET', '?sort=metadata.createdAt:DESC&pageSize=5'),
  await call('POST', '/search?fields=type,status', { q: 'type:EXPORT status:success' }),
]) {
  for (const { id, type, status } of (await found.json()) as Job[]) console.log(`  ${id} ${type} ${status}`);
}
await call('DELETE', `/${jobId}`);
