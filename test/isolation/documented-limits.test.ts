import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { maxRequestBytes } from '../../src/agents/chat-context.ts';
import { maxTextBytes, toolLimits } from '../../src/agents/conversation.ts';
import { maxOutputBytes } from '../../src/agents/history-tool.ts';
import { maxWaitForSession } from '../../src/agents/session-turn.ts';
import { maxSmallBytes } from '../../src/changelog/document/document-at.ts';
import { maxLargeDocuments, maxWaitingDocuments } from '../../src/changelog/history-reads.ts';
import { maxPageBytes } from '../../src/changelog/read/long-page.ts';
import { demoLinkLifetime } from '../../src/cli/demo.ts';
import { defaultTimes } from '../../src/completions/service.ts';
import { freshAfter, maxRest, restPerComputing } from '../../src/concurrency/loop-turn.ts';
import {
  maxBytesOfFirstPieces,
  maxBytesOfLongPieces,
  maxBytesUnderWay,
  maxTurnOfPiece,
} from '../../src/concurrency/piece-budget.ts';
import { maxThreads, maxWaitingCalls } from '../../src/concurrency/thread-pool.ts';
import { maxInlineCharacters } from '../../src/concurrency/threaded.ts';
import { defaultSlice, minSlice, sliceBesideOthers } from '../../src/concurrency/time-slice.ts';
import { requestLimit } from '../../src/concurrency/work.ts';
import { linkLifetime } from '../../src/console/links.ts';
import { maxSignInBytes } from '../../src/console/session-routes.ts';
import { maxSessionsOfClient, sessionLifetime } from '../../src/console/sessions.ts';
import { vitalStatementLimit } from '../../src/context/connections.ts';
import { maxOperations } from '../../src/custom-entities/patch-document.ts';
import { maxInRange } from '../../src/custom-entities/read-documents.ts';
import { maxSchemaCheck, schemaThreads } from '../../src/custom-entities/schema-checker.ts';
import { maxIndexedValues } from '../../src/custom-entities/value-index.ts';
import { maxDescription } from '../../src/db/backup/read-backup.ts';
import { maxEnd } from '../../src/db/backup/tar.ts';
import { maxSilence } from '../../src/db/connections/dead-connections.ts';
import { silenceAfterLimit } from '../../src/db/connections/pool.ts';
import { maxSlowStatements, slowFrom, watchFor } from '../../src/db/connections/slow-statements.ts';
import {
  defaultSilenceLimit,
  defaultStatementLimit,
  readsBesideWrites,
  sharesOf,
} from '../../src/db/connections/tenant-pool.ts';
import { maxDetails } from '../../src/errors.ts';
import { defaultBodyLimits } from '../../src/http/body-shares.ts';
import { lookForLateRequests, maxBodyBytes, maxHeadTime, maxRequestTime } from '../../src/http/http-server.ts';
import {
  maxBodyLevels,
  maxBodyValues,
  maxBytesDecodedAhead,
  maxBytesReadAtOnce,
  maxValuesOfSmallBody,
} from '../../src/http/json-body.ts';
import { maxHeaderFields, maxRequestLine } from '../../src/http/request-head.ts';
import { maxTurnOfRequests } from '../../src/http/request-turns.ts';
import { requestShares } from '../../src/http/request-work.ts';
import { looks, maxClientSilence } from '../../src/http/slow-clients.ts';
import { portionTime } from '../../src/http/tenant-rate.ts';
import { jobPlaces } from '../../src/jobs/dispatcher.ts';
import { minExportTurn } from '../../src/jobs/make-way.ts';
import { maxWaiting } from '../../src/jobs/service.ts';
import { maxMoved, maxPatchedLevels } from '../../src/json/patch.ts';
import { maxDocument } from '../../src/json/size.ts';
import { guessLimits } from '../../src/oauth/guess-limiter.ts';
import { maxFormBytes } from '../../src/oauth/token-route.ts';
import { maxPieceBytes, maxStreamedBytes } from '../../src/pagination/pieces.ts';
import { answerLimits } from '../../src/providers/answer-limits.ts';
import { charactersOfPart } from '../../src/query/regex-pool.ts';
import { maxBodyTime, minThreads } from '../../src/recorder/body-reader.ts';
import * as ofRecorder from '../../src/recorder/limits.ts';
import { maxOwnPathsBytes } from '../../src/recording/prepared-change.ts';
import { maxLaterEntries } from '../../src/recording/rebuild/rebuild-document.ts';
import { maxRejected } from '../../src/recording/rejected/rejected-store.ts';

const textOf = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

/** The rows of the table of limits in docs/operations.md, their cells joined by blanks. */
const rows = tableAfter('| What | Limit | Beyond it |', textOf('docs/operations.md'));

function tableAfter(head: string, page: string): string[] {
  const [table = ''] = page.slice(page.indexOf(head)).trimEnd().split('\n\n');
  return (
    table
      .split('\n')
      .slice(2)
      // A row in bold is the title of those below it.
      .filter((line) => !line.startsWith('| **'))
      .map((line) =>
        line
          .split('|')
          .map((cell) => cell.trim())
          .join(' ')
          .trim(),
      )
  );
}

/** The statement counts its entries up to this number. */
const maxEntriesByIds = Number(/count\(\*\) <= (\d+)/.exec(textOf('sql/changelog/change_read_documents.sql'))?.[1]);

const grouped = (count: number) => count.toLocaleString('en');
const seconds = (milliseconds: number) => `${milliseconds / 1_000} s`;
const minutes = (milliseconds: number) => `${milliseconds / 60_000} minutes`;
const kibibytes = (bytes: number) => `${bytes / 1_024} KiB`;
const mebibytes = (bytes: number) => `${bytes / 1_048_576} MiB`;
const halfOfTenant = (places: number) => `${places}; of one tenant ${places / 2}`;
const connections = sharesOf(1);
const { requests, calls } = requestShares;
const { AGENT_CHAT, EXPORT } = jobPlaces;
const document = `${mebibytes(maxDocument.bytes)}, ${grouped(maxDocument.values)} JSON values`;
const { perClientAndAddress, perAddress } = guessLimits;
const threads = (min: number) => `One less than cores, ${min} to ${maxThreads}`;
const waitingCalls = `${maxWaitingCalls} of a tenant at most`;

// Their tests take them from the code, or try a smaller one. Here they are what an operator reads.
const limits: readonly (readonly [what: string, limit: string])[] = [
  ["Time until an answer's headers are sent", seconds(requestLimit)],
  ['Each later statement of a request', seconds(requestLimit)],
  [
    'Time in which a client sends its request',
    `${seconds(maxRequestTime)}; the request line and the header fields ${seconds(maxHeadTime)}. Annals looks every ${seconds(lookForLateRequests)}`,
  ],
  [
    'Time in which a client takes no byte',
    `${seconds(maxClientSilence)}. Annals looks every ${seconds(maxClientSilence / looks)}`,
  ],
  ['Statements of a process that died', seconds(defaultStatementLimit)],
  [
    'Time in which a connection that owes an answer is silent',
    `${seconds(defaultSilenceLimit)}; of those for tokens and the quota ${seconds(vitalStatementLimit + silenceAfterLimit)}`,
  ],
  ['The same for upkeep and exports', seconds(defaultSilenceLimit)],
  ['Silence of a connection whose statement was to be cancelled', seconds(maxSilence)],
  ['Requests of one tenant under way', `${requests.maxOfTenant} They wait, ${requests.maxWaitingOfTenant} at most`],
  [
    'Event streams and requests that call a provider',
    `${calls.places}; of one tenant ${calls.maxOfTenant} They wait, ${calls.maxWaitingOfTenant} of`,
  ],
  ['Connections for reading, in a process', halfOfTenant(connections.reads)],
  [
    'Statements that read and begin at once while something is written',
    `${halfOfTenant(readsBesideWrites.places)}; the next ones ${readsBesideWrites.milliseconds} ms later`,
  ],
  ['Connections for writing, in a process', halfOfTenant(connections.writes)],
  ['Slow statements that read', `one of ${slowFrom} ms or more in the last ${seconds(watchFor)}`],
  ['Slow statements that read', halfOfTenant(maxSlowStatements)],
  ['Request line', kibibytes(maxRequestLine)],
  ['Header fields together', kibibytes(maxHeaderFields)],
  ['Entries whose ids begin with a text, read in one statement', grouped(maxEntriesByIds)],
  ['Requests of one tenant, over all processes', `${portionTime} ms worth`],
  [
    'Wrong secrets of one client from one address',
    `${perClientAndAddress.burst} at once, then one in ${seconds(perClientAndAddress.interval)}`,
  ],
  ['Wrong secrets from one address', `${perAddress.burst} at once, then one in ${seconds(perAddress.interval)}`],
  ['A request body', `${mebibytes(maxBodyBytes)}; of a request for a token or a session ${kibibytes(maxFormBytes)}`],
  ['A request body', kibibytes(maxSignInBytes)],
  ['Sessions of the console of one client', `${maxSessionsOfClient}, of ${sessionLifetime / 3_600_000} hours`],
  ['A link into the console', `for ${seconds(linkLifetime)}; that of the demo for ${minutes(demoLinkLifetime)}`],
  [
    'A body of the recorder',
    `${grouped(ofRecorder.maxChanges)} changes; ${mebibytes(ofRecorder.maxBytes)} unpacked, ${mebibytes(ofRecorder.maxBytesOfOne)} for one ` +
      `change; ${grouped(ofRecorder.maxValues)} JSON values; ${grouped(ofRecorder.maxLevels)} levels`,
  ],
  ['Rejected changes that a tenant keeps', grouped(maxRejected)],
  [
    'Threads for bodies of the recorder',
    `${threads(minThreads)}; of one tenant half. One body ${seconds(maxBodyTime)}`,
  ],
  ['JSON values in another body', grouped(maxBodyValues)],
  ['Levels of arrays and objects in a body', `${maxBodyLevels}`],
  [
    'Bodies being read or worked on, in a process',
    `${mebibytes(defaultBodyLimits.maxBytes)}; of one tenant ${mebibytes(defaultBodyLimits.maxBytes / 2)}.`,
  ],
  [
    `Bodies of more than ${grouped(maxValuesOfSmallBody)} values being worked on`,
    halfOfTenant(defaultBodyLimits.maxLargeBodies),
  ],
  ['Computations in slices on the event loop', `the first ${defaultSlice} ms, then ${minSlice} ms of each other one`],
  [`Bodies of more than ${kibibytes(maxBytesDecodedAhead)} that are decoded`, 'none'],
  [`Bodies of more than ${grouped(maxBytesReadAtOnce)} bytes that are decoded in one turn`, '1'],
  [
    `The same while another tenant has a request with at most ${grouped(maxBytesReadAtOnce)} bytes`,
    `A slice of ${sliceBesideOthers} ms, a third of the time; a tenant without one in the last ${freshAfter} ms`,
  ],
  [
    `The same while another tenant has a request with at most ${grouped(maxBytesReadAtOnce)} bytes`,
    `They rest ${restPerComputing === 2 ? 'twice' : restPerComputing} as long as they have computed, ${maxRest} ms at most`,
  ],
  ['Requests that begin in one turn of the event loop', `the first ${maxTurnOfRequests} ms`],
  ['Threads for regular expressions', `${threads(1)}; of one tenant half`],
  ['Threads for regular expressions', `${kibibytes(charactersOfPart)} of names`],
  ['Threads for regular expressions', waitingCalls],
  ['Threads for checks against JSON Schemas', halfOfTenant(schemaThreads)],
  [
    `Threads for documents of more than ${grouped(maxInlineCharacters)} characters`,
    `${threads(1)}; of one tenant half`,
  ],
  ['One check against a JSON Schema', seconds(maxSchemaCheck)],
  ['Faults of a request that an answer lists', `the first ${maxDetails}`],
  [
    'Texts of a page of a list that are read at once',
    `${mebibytes(maxPieceBytes)}; of the change history ${mebibytes(maxPageBytes)}`,
  ],
  ['Texts of a page of a list that are read at once', `in pieces of ${mebibytes(maxStreamedBytes)}`],
  [
    'Pieces of answers under way, in a process',
    `${mebibytes(maxBytesUnderWay)}; of one tenant ${mebibytes(maxBytesUnderWay / 2)}.`,
  ],
  ['The same, for a tenant that has no piece under way', `${mebibytes(maxBytesOfFirstPieces)} besides`],
  [
    `The same, for what a piece has beyond ${mebibytes(maxBytesUnderWay / 2)}`,
    `${mebibytes(maxBytesOfLongPieces)} besides; of one tenant ${mebibytes(maxBytesOfLongPieces / 2)}`,
  ],
  ['Pieces of answers that are read from the database at once', `A piece that takes ${maxTurnOfPiece} ms makes way`],
  [`Documents rebuilt from more than ${mebibytes(maxSmallBytes)} of entries`, halfOfTenant(maxLargeDocuments)],
  ['Documents rebuilt from more than', `${maxWaitingDocuments} of a tenant at most`],
  ['Entries after the moment that tell about a document', grouped(maxLaterEntries)],
  ['Instances in a range that an index of the field leads to', grouped(maxInRange)],
  ['JSON values of an instance that the index for filters has', grouped(maxIndexedValues)],
  ['A configuration value', document],
  ['A stored instance or agent', `${document}, ${maxPatchedLevels} levels`],
  ['`paths` of the change of an instance', mebibytes(maxOwnPathsBytes)],
  [
    'What one patch adds, moves and copies',
    `${grouped(maxOperations)} operations, ${mebibytes(maxMoved.bytes)}, ${grouped(maxMoved.values)} JSON values`,
  ],
  ['Chats by job at once in a process', `${AGENT_CHAT.places}; of one tenant ${AGENT_CHAT.maxOfTenant}`],
  ['Exports at once in a process', `${EXPORT.places}; of one tenant ${EXPORT.maxOfTenant}`],
  ['Exports at once in a process', `An export that has run for ${seconds(minExportTurn)} makes way`],
  ['Jobs of one tenant that wait', grouped(maxWaiting)],
  ['Time in which a chat waits for earlier requests of its session', minutes(maxWaitForSession)],
  ['Time in which a call waits for quota', seconds(defaultTimes.quotaWait)],
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
  [`Answers of more than ${kibibytes(answerLimits.shortBytes)} that are read in one turn`, '1'],
  [
    "A provider's answer as a stream",
    `${mebibytes(answerLimits.streamBytes)}; ${mebibytes(answerLimits.streamedTextBytes)} of text, ` +
      `${kibibytes(answerLimits.eventBytes)} an event, ${grouped(answerLimits.toolCalls)} tool calls`,
  ],
  ['Tool calls in one answer of a model', `${toolLimits.calls}`],
  ['Rounds of tool calls in one chat', `${toolLimits.rounds}`],
  ['Results of tools in one chat', `${kibibytes(toolLimits.resultBytes)}; ${kibibytes(maxOutputBytes)} each`],
  ['Input of a tool call', kibibytes(toolLimits.inputBytes)],
  ['Text of all answers in one chat', mebibytes(maxTextBytes)],
  [
    '`begin.json` or `manifest.json` of a backup, and zeros after its archive',
    `${mebibytes(maxDescription)}, ${mebibytes(maxEnd)}`,
  ],
  ['A request to a model', `${mebibytes(maxRequestBytes)},`],
];

test.each(limits)('the documentation has the limit that the code has: %s', (what, limit) => {
  const row = rows.find((cells) => cells.startsWith(what));
  expect(row?.slice(what.length)).toMatch(new RegExp(`(^|[^\\d,.])${RegExp.escape(limit)}(?![\\d,.]*\\d)`));
});

test('every limit that the documentation has is compared', () => {
  const others = rows.filter((row) => !limits.some(([what]) => row.startsWith(what)));
  // This one follows from how statements are cancelled; clients-gone.test.ts tries it.
  expect(others).toEqual([expect.stringMatching(/^Statements of a client that has gone less than 1 s/)]);
});
