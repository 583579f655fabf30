import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { accessRetentionDays } from '../../src/access/accesses/store.ts';
import { maxCredentials, maxLifetime, maxLifetimeOfPerson, maxMakers } from '../../src/access/keys/administration.ts';
import { maxKeyRate } from '../../src/access/keys/key-store.ts';
import { guessLimits } from '../../src/access/oauth/guess-limiter.ts';
import { maxUnconfirmed } from '../../src/access/oauth/makers.ts';
import { maxKeyLifetime, maxKeysOfPerson } from '../../src/access/sessions/key-routes.ts';
import { linkLifetime } from '../../src/access/sessions/links.ts';
import { maxSessionsOfPerson } from '../../src/access/sessions/people-sessions.ts';
import { maxSignInBytes } from '../../src/access/sessions/routes.ts';
import { maxSessionsOfClient, sessionLifetime } from '../../src/access/sessions/sessions.ts';
import { maxRulesBytes } from '../../src/access/sign-in/service.ts';
import { viewerTokenLifetime } from '../../src/access/viewer-tokens/routes.ts';
import { maxTokenLength } from '../../src/access/viewer-tokens/token-text.ts';
import { demoLinkLifetime } from '../../src/cli/commands/demo.ts';
import { vitalStatementLimit } from '../../src/context/foundation.ts';
import { readConfig } from '../../src/core/config/config.ts';
import { maxDetails } from '../../src/core/errors.ts';
import {
  maxBytesOfFirstPieces,
  maxBytesOfLongPieces,
  maxBytesUnderWay,
  maxTurnOfPiece,
} from '../../src/core/fairness/piece-budget.ts';
import { maxBatch } from '../../src/core/fairness/shared-work.ts';
import { maxInlineCharacters, maxThreads, maxWaitingCalls, minThreads } from '../../src/core/fairness/threads.ts';
import {
  defaultSlice,
  freshAfter,
  maxRest,
  minSlice,
  restPerComputing,
  sliceBesideOthers,
} from '../../src/core/fairness/time-slice.ts';
import { requestLimit } from '../../src/core/fairness/work.ts';
import { maxDocument } from '../../src/core/json/measure.ts';
import { maxMoved, maxPatchedLevels } from '../../src/core/json/patch.ts';
import { mailPause } from '../../src/delivery/alerts/alert-state.ts';
import { maxUnacknowledged } from '../../src/delivery/batches/run-batches.ts';
import { maxConcurrentAttempts, maxConcurrentReads, testLimits } from '../../src/delivery/concurrency.ts';
import { maxFailing, maxWaiting as maxWaitingChanges } from '../../src/delivery/dispatch/run-store.ts';
import { retentionDays } from '../../src/delivery/dispatch/upkeep.ts';
import { maxAttempts } from '../../src/delivery/subscriptions/attempt-store.ts';
import { maxHidden, maxSubscriptions } from '../../src/delivery/subscriptions/schemas.ts';
import { targetLimits } from '../../src/delivery/targets/guarded-http.ts';
import { alertLimits, batchLimits, defaultConcurrency, maxConcurrency } from '../../src/delivery/targets/schemas.ts';
import { attemptSteps } from '../../src/delivery/webhooks/retry-schedule.ts';
import { hiddenReach, maxBodyBytes as maxWebhookBytes } from '../../src/delivery/webhooks/webhook-body.ts';
import { maxWaitForSession } from '../../src/desk/agents/chat-attempt.ts';
import { maxRequestBytes } from '../../src/desk/agents/chat-context.ts';
import { maxTextBytes, toolLimits } from '../../src/desk/agents/conversation.ts';
import { anthropicLimits } from '../../src/desk/anthropic/limits.ts';
import { maxAlerts, maxBudgets } from '../../src/desk/budgets/schemas.ts';
import { callRetentionDays } from '../../src/desk/calls/store.ts';
import { maxSums } from '../../src/desk/calls/sums.ts';
import { tokensOfImage } from '../../src/desk/completions/input-bound.ts';
import { defaultUnsentLease } from '../../src/desk/completions/quota.ts';
import { defaultTimes } from '../../src/desk/completions/service.ts';
import { jobPlaces, minExportSlice } from '../../src/desk/jobs/dispatcher.ts';
import { maxWaiting } from '../../src/desk/jobs/service.ts';
import { maxServerName, maxServers, maxTools } from '../../src/desk/mcp/schemas.ts';
import { maxDefinitionBytes, maxToolName } from '../../src/desk/mcp/tool-definition.ts';
import { openaiLimits } from '../../src/desk/openai/limits.ts';
import { maxSmallBytes } from '../../src/history/documents/document-at.ts';
import { maxWordCharacters } from '../../src/history/documents/name-documents.ts';
import { entriesOfPortions, maxCandidates } from '../../src/history/documents/search-documents.ts';
import { maxPageBytes } from '../../src/history/entries/entry-store.ts';
import { longPortions, maxPortionBytes, maxUnsent, streamTime } from '../../src/history/feed/event-stream.ts';
import { maxAnswerBytes } from '../../src/history/feed/feed.ts';
import { feedAnswers } from '../../src/history/feed/routes.ts';
import { feedLimits } from '../../src/history/feed/schemas.ts';
import { maxLargeDocuments, maxWaitingDocuments } from '../../src/history/history-reads.ts';
import { maxBodyBytes as maxMcpBytes } from '../../src/history/mcp/routes.ts';
import { maxEntriesOfFile, maxFilesOfTenant } from '../../src/history/routes/list-route.ts';
import { maxHiddenLevels } from '../../src/history/search/path-predicate.ts';
import { hideLimits } from '../../src/history/search/plan/restriction.ts';
import { maxPendingKibibytes } from '../../src/history/upkeep/statistics.ts';
import { maxViews } from '../../src/history/views/schemas.ts';
import { defaultBodyLimits } from '../../src/http/body-shares.ts';
import { maxNameCharacters } from '../../src/http/chosen-id.ts';
import { checks, maxClientSilence } from '../../src/http/connections.ts';
import { maxFormBytes } from '../../src/http/form-body.ts';
import { lookForLateRequests, maxBodyBytes, maxHeadTime, maxRequestTime } from '../../src/http/http-server.ts';
import {
  maxBodyLevels,
  maxBodyValues,
  maxBytesDecodedAhead,
  maxBytesReadAtOnce,
  maxValuesOfSmallBody,
} from '../../src/http/json-body.ts';
import { maxHeaderFields, maxRequestLine } from '../../src/http/request-head.ts';
import { portionTime } from '../../src/http/request-rates.ts';
import { maxTurnOfRequests } from '../../src/http/request-turns.ts';
import { requestShares } from '../../src/http/request-work.ts';
import { maxPieceBytes, maxStreamedBytes } from '../../src/pagination/pieces.ts';
import { maxDescription } from '../../src/postgres/backup/read-backup.ts';
import { maxEnd } from '../../src/postgres/backup/tar.ts';
import { silenceAfterLimit } from '../../src/postgres/connections/pool.ts';
import { maxSlowStatements, slowFrom, watchFor } from '../../src/postgres/connections/slow-statements.ts';
import {
  defaultSilenceLimit,
  defaultStatementLimit,
  readsBesideWrites,
  sharesOf,
  viewerReads,
} from '../../src/postgres/connections/tenant-pool.ts';
import { maxSilence } from '../../src/postgres/connections/unreachable.ts';
import { maxWitnessBody, witnessLimits } from '../../src/proof/witness/add-checkpoint.ts';
import { witnessAnswer } from '../../src/proof/witness/ask-witness.ts';
import { answerLimits } from '../../src/providers/answer-limits.ts';
import { maxHeaders, maxHeaderValue } from '../../src/providers/tenant-headers.ts';
import { toolAnswerLimits } from '../../src/providers/tool-fetch.ts';
import { maxChanges, maxResultBytes } from '../../src/query/model-tool.ts';
import { queryLimits } from '../../src/query/parse.ts';
import { charactersOfPart } from '../../src/query/regex-pool.ts';
import { maxRejected } from '../../src/recording/batches/rejected-changes.ts';
import { maxNameLength, maxNamesOfEntry } from '../../src/recording/path-names.ts';
import { maxPlaces } from '../../src/recording/positions.ts';
import { maxOwnPathsBytes } from '../../src/recording/prepared-change.ts';
import { maxLaterEntries } from '../../src/recording/rebuild/document-rebuild.ts';
import { maxBodyTime } from '../../src/sources/recorder/body-reader.ts';
import * as ofRecorder from '../../src/sources/recorder/limits.ts';
import { maxOperations } from '../../src/tenants/custom-entities/patch-document.ts';
import { maxInRange } from '../../src/tenants/custom-entities/read-documents.ts';
import { maxSchemaCheck } from '../../src/tenants/custom-entities/schema-checker.ts';
import { maxIndexedValues } from '../../src/tenants/custom-entities/value-index.ts';

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
const maxEntriesByIds = Number(
  /max_by_ids constant bigint := (\d+)/.exec(textOf('sql/history/change_read_documents.sql'))?.[1],
);

const maxNamesOfTenant = Number(
  /max_names constant integer := (\d+)/.exec(textOf('sql/recording/path_register.sql'))?.[1],
);

const grouped = (count: number) => count.toLocaleString('en');
const seconds = (milliseconds: number) => `${milliseconds / 1_000} s`;
const minutes = (milliseconds: number) => `${milliseconds / 60_000} minutes`;
const kibibytes = (bytes: number) => `${bytes / 1_024} KiB`;
const mebibytes = (bytes: number) => `${bytes / 1_048_576} MiB`;
const halfOfTenant = (places: number) => `${places}; of one tenant ${places / 2}`;
const connections = sharesOf(1);
const { requests, viewers, viewer, calls, follows } = requestShares;
const { AGENT_CHAT, EXPORT } = jobPlaces;
const document = `${mebibytes(maxDocument.bytes)}, ${grouped(maxDocument.values)} JSON values`;
const { perClientAndAddress, perAddress } = guessLimits;
const waitingCalls = `${maxWaitingCalls} of a tenant at most`;

// Their tests take them from the code, or try a smaller one. Here they are what an operator reads.
const limits: readonly (readonly [what: string, limit: string])[] = [
  ["Time until Annals sends an answer's headers", seconds(requestLimit)],
  ['Each later statement of a request', seconds(requestLimit)],
  [
    'Time in which a client sends its request',
    `${seconds(maxRequestTime)}; the request line and the header fields ${seconds(maxHeadTime)}. Annals looks every ${seconds(lookForLateRequests)}`,
  ],
  [
    'Time in which a client takes no byte',
    `${seconds(maxClientSilence)}. Annals looks every ${seconds(maxClientSilence / checks)}`,
  ],
  ['Statements of a process that died', seconds(defaultStatementLimit)],
  [
    'Time in which a database connection gives no answer',
    `${seconds(defaultSilenceLimit)}; for tokens and the quota ${seconds(vitalStatementLimit + silenceAfterLimit)}`,
  ],
  ['Time in which a connection for upkeep or exports gives no answer', seconds(defaultSilenceLimit)],
  ['Time in which a connection gives no answer after Annals cancels its statement', seconds(maxSilence)],
  ['Concurrent requests of one tenant', `${requests.maxOfTenant} They wait, ${requests.maxWaitingOfTenant} at most`],
  [
    'Requests of all viewers of one tenant',
    `among the ${requests.maxOfTenant} too ${viewers.maxOfTenant} They wait, ${viewers.maxWaitingOfTenant} at most`,
  ],
  ['Requests of one subject of viewer tokens', `${viewer.maxOfTenant} They wait, ${viewer.maxWaitingOfTenant} at most`],
  [
    'A viewer token',
    `${kibibytes(maxTokenLength)}; ${grouped(viewerTokenLifetime.max)} s; a subject of ${maxNameCharacters} characters`,
  ],
  ['Changes of a file of the viewer', grouped(maxEntriesOfFile)],
  ['Files of viewers of one tenant that are made or sent', String(maxFilesOfTenant)],
  [
    'Concurrent event streams of chats and requests that call a provider',
    `${calls.places}; of one tenant ${calls.maxOfTenant} They wait, ${calls.maxWaitingOfTenant} of`,
  ],
  [
    'Readers of the feed, waiting or streaming',
    `${grouped(follows.places)}; of one tenant ${grouped(follows.maxOfTenant)}`,
  ],
  ['Answers of the feed that are read or sent as JSON', halfOfTenant(feedAnswers.places)],
  ['Answers of the feed that are read or sent as JSON', `${grouped(feedAnswers.maxWaitingOfTenant)} of a tenant`],
  ['Positions that one request of the feed looks at', grouped(maxPlaces)],
  ['A request of an AI tool', kibibytes(maxMcpBytes)],
  ['What one call of an AI tool answers', `${kibibytes(maxResultBytes)}; ${maxChanges} changes`],
  ['`limit` and `wait` of the feed', `${grouped(feedLimits.items)} changes; ${feedLimits.wait} s`],
  ['Changes in one answer of the feed', mebibytes(maxAnswerBytes)],
  ['What a client of a stream of the feed has not taken', mebibytes(maxUnsent)],
  [
    `Changes of more than ${kibibytes(2 * maxPortionBytes)} that clients`,
    `${mebibytes(longPortions.places)}; of one tenant ${mebibytes(longPortions.places / 2)}`,
  ],
  ['A stream of the feed', `${streamTime.mean / 60_000} minutes, plus or minus ${streamTime.spread / 60_000}`],
  [
    'Connections for reading, in a process',
    `${halfOfTenant(connections.reads)}, of its viewers together ${viewerReads(connections.reads)}`,
  ],
  [
    'Reading statements that begin at once while another statement writes',
    `${halfOfTenant(readsBesideWrites.places)}; the next ones ${readsBesideWrites.milliseconds} ms later`,
  ],
  ['Connections for writing, in a process', halfOfTenant(connections.writes)],
  ['Slow reading statements', `For ${seconds(watchFor)} after a statement of ${slowFrom} ms or more`],
  ['Slow reading statements', halfOfTenant(maxSlowStatements)],
  ['Request line', kibibytes(maxRequestLine)],
  ['Header fields together', kibibytes(maxHeaderFields)],
  ['Entries that one statement reads by the beginning of their ids', grouped(maxEntriesByIds)],
  ['Requests of one tenant, over all processes', `the requests of ${portionTime} ms`],
  ['Requests of one [key]', `${grouped(maxKeyRate)} a second`],
  [
    'Wrong secrets of one client from one address',
    `${perClientAndAddress.burst} at once, then one in ${seconds(perClientAndAddress.interval)}`,
  ],
  ['Wrong secrets from one address', `${perAddress.burst} at once, then one in ${seconds(perAddress.interval)}`],
  ['A request body', `${mebibytes(maxBodyBytes)}; of a request for a token or a session ${kibibytes(maxFormBytes)}`],
  ['A request body', kibibytes(maxSignInBytes)],
  [
    'A request body',
    `of an OpenAI or Anthropic client ${mebibytes(openaiLimits.bodyBytes)}, of which ${mebibytes(openaiLimits.textBytes)} text`,
  ],
  ['Console sessions of one client', `${maxSessionsOfClient}, of ${sessionLifetime / 3_600_000} hours`],
  ["Sessions of one person with a company's account, in one tenant", String(maxSessionsOfPerson)],
  [
    'Keys that one person has made in the console, in one tenant',
    `${maxKeysOfPerson}, each for ${maxKeyLifetime / 86_400} days at most`,
  ],
  ['Active clients of a tenant, and active keys, where one is made over HTTP', `${grouped(maxCredentials)} each`],
  ['Clients through which a client or a key is made, one by the other', String(maxMakers)],
  [
    'The life of what is made over HTTP',
    `${grouped(maxLifetime / 86_400)} days; of what a person makes ${maxLifetimeOfPerson / 86_400} days`,
  ],
  [
    'How long the keys of a person stay valid while the provider cannot confirm them',
    `${maxUnconfirmed / 3_600_000} hours`,
  ],
  ['The file of `ANNALS_OIDC_RULES`', mebibytes(maxRulesBytes)],
  ['A link into the console', `for ${seconds(linkLifetime)}; the link of the demo for ${minutes(demoLinkLifetime)}`],
  [
    'A body of the recorder',
    `${grouped(ofRecorder.maxChanges)} changes; ${mebibytes(ofRecorder.maxBytes)} decompressed, ${mebibytes(ofRecorder.maxBytesOfOne)} for one ` +
      `change; ${grouped(ofRecorder.maxValues)} JSON values; ${grouped(ofRecorder.maxLevels)} levels`,
  ],
  ['Rejected changes that Annals stores for a tenant', grouped(maxRejected)],
  ['JSON values in a request body', grouped(maxBodyValues)],
  ['Levels of arrays and objects in a request body', `${maxBodyLevels}`],
  [
    'Bodies that Annals reads or processes, in a process',
    `${mebibytes(defaultBodyLimits.maxBytes)}; of one tenant ${mebibytes(defaultBodyLimits.maxBytes / 2)}.`,
  ],
  [
    `Bodies of more than ${grouped(maxValuesOfSmallBody)} values that Annals processes`,
    halfOfTenant(defaultBodyLimits.maxLargeBodies),
  ],
  ['Long computations in one iteration', `One for the first ${defaultSlice} ms, and ${minSlice} ms for each other one`],
  [`Bodies of more than ${kibibytes(maxBytesDecodedAhead)} that Annals decodes while they wait`, 'none'],
  [`Bodies of more than ${grouped(maxBytesReadAtOnce)} bytes that Annals decodes in one iteration`, '1'],
  [
    `Long computations while a short request of another tenant (at most ${grouped(maxBytesReadAtOnce)} bytes)`,
    `Time slices of ${sliceBesideOthers} ms, a third of the time. The first slice of a tenant that had none in the last ${freshAfter} ms`,
  ],
  [
    `Long computations while a short request of another tenant (at most ${grouped(maxBytesReadAtOnce)} bytes)`,
    `for ${restPerComputing === 2 ? 'twice' : restPerComputing} the time that they have computed, at most ${maxRest} ms`,
  ],
  ['Requests that begin in one iteration of the event loop', `the first ${maxTurnOfRequests} ms`],
  ['Threads, in a process', `One less than cores, ${minThreads} to ${maxThreads}; of one tenant half`],
  ['Threads, in a process', `documents of more than ${grouped(maxInlineCharacters)} characters`],
  ['Threads, in a process', waitingCalls],
  ['A regular expression', `${kibibytes(charactersOfPart)} of names`],
  [
    'Threads for bodies of the recorder',
    `One less than cores, ${minThreads} to ${maxThreads}; of one tenant half. ${seconds(maxBodyTime)} for one body`,
  ],
  ['One check against a JSON Schema', seconds(maxSchemaCheck)],
  ['Faults of a request that an answer lists', `the first ${maxDetails}`],
  [
    "Texts of a list's page that Annals reads at once",
    `${mebibytes(maxPieceBytes)}; of the change history ${mebibytes(maxPageBytes)}`,
  ],
  ["Texts of a list's page that Annals reads at once", `in parts of ${mebibytes(maxStreamedBytes)}`],
  [
    'Parts of long answers in memory, in a process',
    `${mebibytes(maxBytesUnderWay)}; of one tenant ${mebibytes(maxBytesUnderWay / 2)}.`,
  ],
  ['More memory for the first part of each tenant', mebibytes(maxBytesOfFirstPieces)],
  [
    `More memory for the bytes beyond ${mebibytes(maxBytesUnderWay / 2)} of a part`,
    `${mebibytes(maxBytesOfLongPieces)}; of one tenant ${mebibytes(maxBytesOfLongPieces / 2)}`,
  ],
  [
    'Parts of long answers that Annals reads from the database',
    `longer than ${maxTurnOfPiece} ms, the next one starts`,
  ],
  [`Documents rebuilt from more than ${mebibytes(maxSmallBytes)} of entries`, halfOfTenant(maxLargeDocuments)],
  ['Documents rebuilt from more than', `${maxWaitingDocuments} of a tenant at most`],
  ['Later entries that Annals reads to rebuild a document', grouped(maxLaterEntries)],
  [
    'Names of paths that Annals registers',
    `${grouped(maxNamesOfTenant)}, and ${grouped(maxNamesOfEntry)} of one entry, with at most ${grouped(maxNameLength)} characters`,
  ],
  ['Pending list of the index of paths', mebibytes(maxPendingKibibytes * 1_024)],
  ['Documents with a name or an id that may match', grouped(maxCandidates)],
  ['Newest entries that such a search reads', grouped(entriesOfPortions.reduce((sum, entries) => sum + entries, 0))],
  ['Characters of a word in the directory', grouped(maxWordCharacters)],
  ['Subscriptions of a tenant', String(maxSubscriptions)],
  [
    '`--query` of a client',
    `As \`q\`: ${grouped(queryLimits.characters)} characters, ${queryLimits.terms} terms, ${queryLimits.levels} levels`,
  ],
  ['`--hide` of a client', `${hideLimits.paths} paths of ${hideLimits.characters} characters`],
  ['Arrays in each other that a term on values looks into for such a client', String(maxHiddenLevels)],
  ['`hide` of a subscription', `${maxHidden} paths`],
  [
    'Levels of a value that `hide` of a subscription looks into',
    `${hiddenReach.levels}, by paths of ${grouped(hiddenReach.path)} characters`,
  ],
  ['Headers of a target', `${maxHeaders}, of ${grouped(maxHeaderValue)} characters each`],
  ['Calls to targets at once, in a process', halfOfTenant(maxConcurrentAttempts)],
  ['Readings for deliveries at once, in a process', halfOfTenant(maxConcurrentReads)],
  ['Samples that are sent at once, in a process', `${testLimits.places}; of one tenant ${testLimits.maxOfTenant}`],
  ['Calls to one webhook at once', `${defaultConcurrency}; \`concurrency\` allows 1 to ${maxConcurrency}`],
  ['Changes of a webhook that wait for an attempt', grouped(maxWaitingChanges)],
  [
    'Request to `annals witness`',
    `${kibibytes(maxWitnessBody)}, sent within ${seconds(witnessLimits.request)}; ${witnessLimits.connections} connections`,
  ],
  ['Answer of a witness', `${seconds(witnessAnswer.time)}, ${kibibytes(witnessAnswer.bytes)}`],
  ['Body of a webhook', kibibytes(maxWebhookBytes)],
  [
    'What Annals reads of the answer of a target',
    `${kibibytes(targetLimits.answerBytes)}, and ${seconds(targetLimits.answer)} from the beginning of the call; it keeps ${grouped(targetLimits.keptBytes)} bytes`,
  ],
  ['Time until a target is connected', seconds(targetLimits.connect)],
  ['Attempts to deliver a change by webhook', `${attemptSteps.length + 1}, over 3 days`],
  ['Parked changes', `${retentionDays.parked} days`],
  ['Records of calls of models that are kept', `${callRetentionDays} days`],
  ['Models, and users, whose calls of a UTC day Annals sums apart for ever', `${maxSums.toLocaleString('en')} each`],
  ['Names in an answer about costs', maxSums.toLocaleString('en')],
  ['Calls of a tenant that one transaction settles', grouped(maxBatch)],
  ['Accesses that are kept', `${accessRetentionDays} days; refusals of a client are one row an hour`],
  ['Attempts that are kept', `${retentionDays.attempts} days, and ${grouped(maxAttempts)} of a subscription`],
  ['Nothing but failures of a subscription', `${maxFailing / 86_400_000} days`],
  ['Budgets of a tenant; thresholds of one', `${maxBudgets}; ${maxAlerts}`],
  ['Saved views of a tenant', `${maxViews}, with names of ${maxNameCharacters} characters`],
  ['Changes of a batch', `${grouped(batchLimits.maxChanges.default)}; at most ${grouped(batchLimits.maxChanges.max)}`],
  [
    'Bytes of a batch before compression',
    `${mebibytes(batchLimits.maxBytes.default)}; at most ${mebibytes(batchLimits.maxBytes.max)}`,
  ],
  [
    'Seconds until a batch ends that is not full',
    `${batchLimits.maxSeconds.default}; at most ${grouped(batchLimits.maxSeconds.max)}`,
  ],
  ['Time in which Splunk has to acknowledge a batch', minutes(maxUnacknowledged)],
  ['Threshold of an alert', `${grouped(alertLimits.count)} changes in ${grouped(alertLimits.minutes)} minutes`],
  ['Time between two e-mails of an alert', minutes(mailPause)],
  ['Instances in a range that Annals reads with an index of the field', grouped(maxInRange)],
  ['JSON values of an instance in the index for filters', grouped(maxIndexedValues)],
  ['A configuration value', document],
  ['A stored instance or agent', `${document}, ${maxPatchedLevels} levels`],
  ['`paths` of the change of an instance', mebibytes(maxOwnPathsBytes)],
  [
    'Data that one patch adds, moves and copies',
    `${grouped(maxOperations)} operations, ${mebibytes(maxMoved.bytes)}, ${grouped(maxMoved.values)} JSON values`,
  ],
  ['Concurrent chat jobs, in a process', `${AGENT_CHAT.places}; of one tenant ${AGENT_CHAT.maxOfTenant}`],
  ['Concurrent exports, in a process', `${EXPORT.places}; of one tenant ${EXPORT.maxOfTenant}`],
  ['Concurrent exports, in a process', `an export that has run for ${seconds(minExportSlice)} pauses`],
  ['Jobs of one tenant that wait', grouped(maxWaiting)],
  ['Time in which a chat waits for earlier requests of its session', minutes(maxWaitForSession)],
  ['Time in which a call waits for a quota', seconds(defaultTimes.quotaWait)],
  ['Input tokens that an image reserves with the shared token', grouped(tokensOfImage)],
  [
    'Inputs, JSON values of a request and of an answer of embeddings, and bytes of an answer',
    `${grouped(openaiLimits.inputs)}; ${grouped(openaiLimits.embeddingValues)}; ${grouped(answerLimits.embeddingsValues)}; ${mebibytes(answerLimits.embeddingsBytes)}`,
  ],
  [
    'Messages, items of `input`, tools and `stop` of a request of an OpenAI client',
    `${grouped(openaiLimits.messages)}; ${grouped(openaiLimits.items)}; ${openaiLimits.tools}; ${openaiLimits.stops}`,
  ],
  [
    'Messages, tools and bytes of query of a request of an Anthropic client',
    `${grouped(anthropicLimits.messages)}; ${grouped(anthropicLimits.tools)}; ${grouped(anthropicLimits.queryBytes)}`,
  ],
  [
    'Characters of `model` and of `user` in a request of an OpenAI or Anthropic client',
    `${openaiLimits.modelCharacters}`,
  ],
  [
    'Characters of `model` and of `user` in a request of an OpenAI or Anthropic client',
    `${openaiLimits.userCharacters}`,
  ],
  [
    'Time in which Annals reads on after the client of a stream on the shared token has gone',
    `\`ANNALS_COMPLETION_DRAIN\`, ${seconds(readConfig({}).completionDrain)}`,
  ],
  ['Time until a call on the shared token has its connection', seconds(defaultUnsentLease)],
  ['Time in which a provider sends no byte during a call', seconds(defaultTimes.provider.silence)],
  ['Total time of a call of a provider', minutes(defaultTimes.provider.total)],
  [
    "A provider's answer without a stream",
    `${mebibytes(answerLimits.wholeBytes)}, ${grouped(answerLimits.wholeValues)} JSON values`,
  ],
  [
    `Tool calls that Annals checks in such an answer of more than ${kibibytes(answerLimits.shortBytes)}`,
    `${answerLimits.checkedToolCalls}`,
  ],
  [`Answers of more than ${kibibytes(answerLimits.shortBytes)} that Annals parses in one iteration`, '1'],
  [
    "A provider's answer as a stream",
    `${mebibytes(answerLimits.streamBytes)}; ${mebibytes(answerLimits.streamedTextBytes)} of text, ` +
      `${kibibytes(answerLimits.eventBytes)} an event, ${grouped(answerLimits.toolCalls)} tool calls`,
  ],
  ['Tool calls in one answer of a model', `${toolLimits.calls}`],
  ['Rounds of tool calls in one chat', `${toolLimits.rounds}`],
  ['Results of tools in one chat', `${kibibytes(toolLimits.resultBytes)}; ${kibibytes(maxResultBytes)} each`],
  ['Input of a tool call', kibibytes(toolLimits.inputBytes)],
  ['Servers of tools of an agent', `${maxServers}; ${maxTools} tools together`],
  ['Name of such a server, of a tool together with it', `${maxServerName} characters; ${maxToolName}`],
  ['Headers of such a server', `${maxHeaders}, of ${grouped(maxHeaderValue)} characters each`],
  ['The definition of a tool', `${kibibytes(maxDefinitionBytes)} of canonical JSON`],
  ['One call of a server of tools, what it offers included', `${toolAnswerLimits.time / 1_000} s`],
  [
    'Answer of a server of tools to one call',
    `${mebibytes(toolAnswerLimits.bytes)}, ${grouped(toolAnswerLimits.values)} JSON values, ${toolAnswerLimits.levels} levels, ${grouped(toolAnswerLimits.events)} events`,
  ],
  ['Text of all answers in one chat', mebibytes(maxTextBytes)],
  [
    '`begin.json` or `manifest.json` of a backup, and zeros after its archive',
    `${mebibytes(maxDescription)}, ${mebibytes(maxEnd)}`,
  ],
  ['A request to a model', `${mebibytes(maxRequestBytes)},`],
  ['`begin.json` or `manifest.json` of a backup', `${mebibytes(maxDescription)}, ${mebibytes(maxEnd)}`],
];

test.each(limits)('the documentation has the limit that the code has: %s', (what, limit) => {
  const row = rows.find((cells) => cells.startsWith(what));
  expect(row?.slice(what.length)).toMatch(new RegExp(`(^|[^\\d,.])${RegExp.escape(limit)}(?![\\d,.]*\\d)`));
});

test('every limit that the documentation has is compared', () => {
  const others = rows.filter((row) => !limits.some(([what]) => row.startsWith(what)));
  // This one follows from how statements are cancelled; statements-end.test.ts tries it.
  expect(others).toEqual([expect.stringMatching(/^Statements of a client that has disconnected less than 1 s/)]);
});
