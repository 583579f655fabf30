// Asks for change history: GET /changelog/{tenant}/changelogs. Run it with, for instance:
// node examples/history.ts 'entity:product type:update'
import { getToken, setting } from './token.ts';

interface History {
  items: { at: string; type: string; entity: string; entityId: string; actor: string; paths: object }[];
  totalElements: number;
  totalPages: number;
}

const [q = 'entity:order actor:Jane Doe'] = process.argv.slice(2);
const url = new URL(`${setting('ANNALS_URL')}/changelog/demo/changelogs`);
url.search = new URLSearchParams({ q, page: '1', size: '5' }).toString();

const token = await getToken('changelog.changelog_read');
const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
const { items, totalElements, totalPages } = (await response.json()) as History;

console.log(`${totalElements} changes on ${totalPages} pages; the latest:`);
for (const { at, type, entity, entityId, actor, paths } of items) {
  console.log(`${at} ${actor}: ${type} ${entity} ${entityId} (${Object.keys(paths).join(', ')})`);
}
