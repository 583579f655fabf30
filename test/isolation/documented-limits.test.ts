import { readFile } from 'node:fs/promises';
import { beforeAll, expect, test } from 'vitest';
import { toolLimits } from '../../src/agents/conversation.ts';
import { maxLargeDocuments } from '../../src/changelog/history-reads.ts';
import { demoLinkLifetime } from '../../src/cli/demo.ts';
import { defaultTimes } from '../../src/completions/service.ts';
import { linkLifetime } from '../../src/console/links.ts';
import { defaultSilenceLimit } from '../../src/db/tenant-pool.ts';
import { minExportTurn } from '../../src/jobs/make-way.ts';
import { maxDocument } from '../../src/json/size.ts';
import { maxRejected } from '../../src/recording/rejected/rejected-store.ts';

/** The column `Limit` of the table in docs/operations.md, by its column `What`. */
const limits = new Map<string, string>();

beforeAll(async () => {
  const page = await readFile(new URL('../../docs/operations.md', import.meta.url), 'utf8');
  for (const line of page.slice(page.indexOf('| What | Limit | Beyond it |')).split('\n')) {
    const [, what = '', limit = ''] = line.split('|').map((cell) => cell.trim());
    limits.set(what, limit);
  }
});

const grouped = (count: number) => count.toLocaleString('en');
const seconds = (milliseconds: number) => `${milliseconds / 1_000} s`;
const minutes = (milliseconds: number) => `${milliseconds / 60_000} minutes`;
const document = `${maxDocument.bytes / 1_048_576} MiB, ${grouped(maxDocument.values)} JSON values`;

// Their tests take them from the code, or try a smaller one. Here they are what an operator reads.
test.each([
  ['Time in which a connection that owes an answer is silent', `${seconds(defaultSilenceLimit)};`],
  ['The same for upkeep and exports, whose statements may take long', seconds(defaultSilenceLimit)],
  ['Rejected changes that a tenant keeps', grouped(maxRejected)],
  ['A link into the console', `for ${seconds(linkLifetime)}; that of the demo for ${minutes(demoLinkLifetime)}`],
  ['Silence of a provider during a call', seconds(defaultTimes.provider.silence)],
  ['Whole time of a call of a provider', minutes(defaultTimes.provider.total)],
  ['A configuration value', document],
  ['A stored instance or agent', document],
  ['Input of a tool call', `${toolLimits.inputBytes / 1_024} KiB`],
  [
    'Documents rebuilt from more than 1 MiB of entries, in a process',
    `${maxLargeDocuments}; of one tenant ${maxLargeDocuments / 2}`,
  ],
])('the documentation has the limit that the code has: %s', (what, limit) => {
  expect(limits.get(what)).toContain(limit);
});

test('the documentation tells how long an export runs before it makes way', async () => {
  const page = await readFile(new URL('../../docs/operations.md', import.meta.url), 'utf8');
  expect(page).toContain(`An export that has run for ${seconds(minExportTurn)} makes way`);
});
