import { readFile } from 'node:fs/promises';
import { beforeAll, expect, test } from 'vitest';
import { maxRequestBytes } from '../../src/agents/chat-context.ts';
import { maxTextBytes, toolLimits } from '../../src/agents/conversation.ts';
import { maxLargeDocuments } from '../../src/changelog/history-reads.ts';
import { demoLinkLifetime } from '../../src/cli/demo.ts';
import { defaultTimes } from '../../src/completions/service.ts';
import { maxBytesOfFirstPieces, maxBytesOfLongPieces, maxBytesUnderWay } from '../../src/concurrency/piece-budget.ts';
import { requestLimit } from '../../src/concurrency/work.ts';
import { linkLifetime } from '../../src/console/links.ts';
import { maxSessionsOfClient, sessionLifetime } from '../../src/console/sessions.ts';
import { maxIndexedValues } from '../../src/custom-entities/value-index.ts';
import { maxSilence } from '../../src/db/connections/dead-connections.ts';
import { maxSlowStatements } from '../../src/db/connections/slow-statements.ts';
import { defaultSilenceLimit, sharesOf } from '../../src/db/connections/tenant-pool.ts';
import { maxDetails } from '../../src/errors.ts';
import { defaultBodyLimits } from '../../src/http/body-shares.ts';
import { maxBytesDecodedAhead, maxBytesReadAtOnce } from '../../src/http/json-body.ts';
import { maxHeaderFields, maxRequestLine } from '../../src/http/request-head.ts';
import { requestShares } from '../../src/http/request-work.ts';
import { maxClientSilence } from '../../src/http/slow-clients.ts';
import { jobPlaces } from '../../src/jobs/dispatcher.ts';
import { minExportTurn } from '../../src/jobs/make-way.ts';
import { maxWaiting } from '../../src/jobs/service.ts';
import { maxDocument } from '../../src/json/size.ts';
import { answerLimits } from '../../src/providers/answer-limits.ts';
import * as ofRecorder from '../../src/recorder/limits.ts';
import { maxRejected } from '../../src/recording/rejected/rejected-store.ts';

/** The rows of the table of limits in docs/operations.md, their cells joined by blanks. */
let rows: string[] = [];

beforeAll(async () => {
  const page = await readFile(new URL('../../docs/operations.md', import.meta.url), 'utf8');
  const table = page.slice(page.indexOf('| What | Limit | Beyond it |'));
  rows = table.split('\n').map((line) =>
    line
      .split('|')
      .map((cell) => cell.trim())
      .join(' ')
      .trim(),
  );
});

const grouped = (count: number) => count.toLocaleString('en');
const seconds = (milliseconds: number) => `${milliseconds / 1_000} s`;
const minutes = (milliseconds: number) => `${milliseconds / 60_000} minutes`;
const kibibytes = (bytes: number) => `${bytes / 1_024} KiB`;
const mebibytes = (bytes: number) => `${bytes / 1_048_576} MiB`;
const halfOfTenant = (places: number) => `${places}; of one tenant ${places / 2}`;
const connections = sharesOf(1);
const { requests, calls } = requestShares;
const { AGENT_CHAT, EXPORT } = jobPlaces;
const document = `${maxDocument.bytes / 1_048_576} MiB, ${grouped(maxDocument.values)} JSON values`;

// Their tests take them from the code, or try a smaller one. Here they are what an operator reads.
test.each([
  ["Time until an answer's headers are sent", seconds(requestLimit)],
  ['Each later statement of a request', seconds(requestLimit)],
  ['Time in which a client takes no byte', seconds(maxClientSilence)],
  ['Time in which a connection that owes an answer is silent', `${seconds(defaultSilenceLimit)};`],
  ['The same for upkeep and exports', seconds(defaultSilenceLimit)],
  ['Silence of a connection whose statement was to be cancelled', seconds(maxSilence)],
  ['Requests of one tenant under way', `${requests.maxOfTenant} They wait, ${requests.maxWaitingOfTenant} at most`],
  [
    'Event streams and requests that call a provider',
    `${calls.places}; of one tenant ${calls.maxOfTenant} They wait, ${calls.maxWaitingOfTenant} of`,
  ],
  ['Connections for reading, in a process', halfOfTenant(connections.reads)],
  ['Connections for writing, in a process', halfOfTenant(connections.writes)],
  ['Slow statements that read', halfOfTenant(maxSlowStatements)],
  ['Request line', kibibytes(maxRequestLine)],
  ['Header fields together', kibibytes(maxHeaderFields)],
  ['Sessions of the console of one client', `${maxSessionsOfClient}, of ${sessionLifetime / 3_600_000} hours`],
  ['A link into the console', `for ${seconds(linkLifetime)}; that of the demo for ${minutes(demoLinkLifetime)}`],
  [
    'A body of the recorder',
    `${grouped(ofRecorder.maxChanges)} changes; ${mebibytes(ofRecorder.maxBytes)} unpacked, ${mebibytes(ofRecorder.maxBytesOfOne)} for one ` +
      `change; ${grouped(ofRecorder.maxValues)} JSON values; ${grouped(ofRecorder.maxLevels)} levels`,
  ],
  ['Rejected changes that a tenant keeps', grouped(maxRejected)],
  [
    'Bodies being read or worked on, in a process',
    `${mebibytes(defaultBodyLimits.maxBytes)}; of one tenant ${mebibytes(defaultBodyLimits.maxBytes / 2)}.`,
  ],
  ['Bodies of more than 10,000 values being worked on', halfOfTenant(defaultBodyLimits.maxLargeBodies)],
  [`Bodies of more than ${kibibytes(maxBytesDecodedAhead)} that are decoded`, 'none'],
  [`Bodies of more than ${grouped(maxBytesReadAtOnce)} bytes that are decoded in one turn`, '1'],
  [`The same while another tenant has a request with at most ${grouped(maxBytesReadAtOnce)} bytes`, '4 ms'],
  ['Faults of a request that an answer lists', `the first ${maxDetails}`],
  [
    'Pieces of answers under way, in a process',
    `${mebibytes(maxBytesUnderWay)}; of one tenant ${mebibytes(maxBytesUnderWay / 2)}.`,
  ],
  ['The same, for a tenant that has no piece under way', `${mebibytes(maxBytesOfFirstPieces)} besides`],
  ['The same, for what a piece has beyond 8 MiB', `${mebibytes(maxBytesOfLongPieces)} besides`],
  ['Documents rebuilt from more than 1 MiB of entries', halfOfTenant(maxLargeDocuments)],
  ['JSON values of an instance that the index for filters has', grouped(maxIndexedValues)],
  ['A configuration value', document],
  ['A stored instance or agent', document],
  ['Chats by job at once in a process', `${AGENT_CHAT.places}; of one tenant ${AGENT_CHAT.maxOfTenant}`],
  ['Exports at once in a process', `${EXPORT.places}; of one tenant ${EXPORT.maxOfTenant}`],
  ['Exports at once in a process', `An export that has run for ${seconds(minExportTurn)} makes way`],
  ['Jobs of one tenant that wait', grouped(maxWaiting)],
  ['Silence of a provider during a call', seconds(defaultTimes.provider.silence)],
  ['Whole time of a call of a provider', minutes(defaultTimes.provider.total)],
  [
    "A provider's answer in one piece",
    `${mebibytes(answerLimits.wholeBytes)}, ${grouped(answerLimits.wholeValues)} JSON values`,
  ],
  [
    `Tool calls that Annals checks in such an answer of more than ${kibibytes(answerLimits.shortBytes)}`,
    `${answerLimits.checkedToolCalls}`,
  ],
  [
    "A provider's answer as a stream",
    `${mebibytes(answerLimits.streamBytes)}; ${mebibytes(answerLimits.streamedTextBytes)} of text, ` +
      `${kibibytes(answerLimits.eventBytes)} an event, ${grouped(answerLimits.toolCalls)} tool calls`,
  ],
  ['Tool calls in one answer of a model', `${toolLimits.calls}`],
  ['Results of tools in one chat', `${kibibytes(toolLimits.resultBytes)};`],
  ['Input of a tool call', kibibytes(toolLimits.inputBytes)],
  ['Text of all answers in one chat', mebibytes(maxTextBytes)],
  ['A request to a model', `${mebibytes(maxRequestBytes)},`],
])('the documentation has the limit that the code has: %s', (what, limit) => {
  const row = rows.find((cells) => cells.startsWith(what));
  expect(row?.slice(what.length)).toMatch(new RegExp(`(^|[^\\d,.])${RegExp.escape(limit)}(?![\\d,.]*\\d)`));
});
