// Exports change history, waits for it, reads the file, and tidies up. Run it with, for instance:
// node examples/jobs.ts 'entity:product type:update'
// With curl: curl -s "$ANNALS_URL/ai-service/demo/jobs" -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \
//   -d '{"type":"EXPORT","q":"entity:order","format":"CSV"}'
import { and, field } from '@annals/client/query';
import { demoClient } from './annals.ts';

const [q = 'entity:order'] = process.argv.slice(2);
const { jobs } = demoClient('changelog.changelog_read');

const { jobId } = await jobs.export({ q, format: 'NDJSON' });
const { metadata } = await jobs.wait(jobId, { signal: AbortSignal.timeout(60_000) });
console.log(`${metadata.entries} entries, ${metadata.bytes} bytes`);

// One entry at a time, however many there are.
const actors = new Map<string, number>();
for await (const { actor } of jobs.entries(jobId)) actors.set(actor, (actors.get(actor) ?? 0) + 1);
console.log([...actors].sort(([, one], [, other]) => other - one).slice(0, 3));

// Or the file as it is: a stream, to be piped wherever it should go.
const { body, contentType } = await jobs.content(jobId);
const file = await new Response(body).text();
console.log(`${contentType}, which begins:\n${file.slice(0, 300)}`);

const latest = await jobs.list({ sort: 'metadata.createdAt:DESC', pageSize: 5, fields: 'type,status', total: true });
console.log(`${latest.total} jobs; the latest:`, latest.items);
const found = and(field('type').is('EXPORT'), field('status').is('success'), field('metadata.entries').above(0));
for await (const { id } of jobs.list({ q: found })) console.log(`${id} found something`);

await jobs.delete(jobId);
