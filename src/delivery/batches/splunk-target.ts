import { uuidOf } from '../../core/text-hash.ts';
import type { DeliveredChange } from '../changes.ts';
import type { Exchange, GuardedHttp } from '../targets/guarded-http.ts';
import { faultsOfUrl, type SplunkMembers, SplunkTarget } from '../targets/schemas.ts';
import type { Sending, TargetMembers } from '../targets/target.ts';
import { type BatchResult, type BatchTarget, resultOfTest, resultWith } from './batch-target.ts';
import { joinedTexts, sourceOf, textsOf } from './batch-text.ts';
import { sampleChange } from './sample-change.ts';

/** Response code of the collector. */
const acknowledgementIsOff = 14;

/** The collector's response, if it is JSON. */
interface CollectorResponse {
  readonly text?: unknown;
  readonly code?: unknown;
  readonly ackId?: unknown;
  readonly acks?: unknown;
}

/**
 * Splunk's HTTP Event Collector. With indexer acknowledgement, a batch is delivered once Splunk has indexed it;
 * otherwise once Splunk accepts it.
 */
export function createSplunkTarget({
  http,
  baseUrl,
  now,
}: {
  http: GuardedHttp;
  baseUrl: string | undefined;
  now: () => number;
}): BatchTarget {
  const membersOf = ({ target }: Pick<Sending, 'target'>) => target as TargetMembers & SplunkMembers;

  async function request(sending: Sending, path: string, body: string) {
    const { url, token } = membersOf(sending);
    return await http.send(sending.tenant, {
      url: `${url.replace(/\/+$/, '')}/services/collector/${path}`,
      headers: {
        authorization: `Splunk ${token}`,
        'content-type': 'application/json',
        // Acknowledgement ids are per channel.
        'x-splunk-request-channel': channelOf(sending),
      },
      body,
      signal: sending.signal,
    });
  }

  async function send(sending: Sending, text: string): Promise<BatchResult> {
    const answer = await request(sending, 'event', text);
    if (answer.result.outcome !== 'delivered') return explained(answer);
    const { ackId } = collectorResponse(answer);
    return Number.isSafeInteger(ackId) ? { ...resultWith(answer, 'taken'), receipt: String(ackId) } : answer.result;
  }

  async function acknowledged(sending: Sending, receipt: string): Promise<BatchResult> {
    const answer = await request(sending, 'ack', `{"acks":[${receipt}]}`);
    const { code, acks } = collectorResponse(answer);
    if (code === acknowledgementIsOff) return resultWith(answer, 'delivered');
    if (answer.result.outcome !== 'delivered') return explained(answer);
    const isIndexed = isObject(acks) && acks[receipt] === true;
    return isIndexed ? resultWith(answer, 'delivered') : { ...resultWith(answer, 'taken'), receipt };
  }

  return {
    type: 'splunk',
    schema: SplunkTarget,
    secrets: ['token'],
    maxAge: undefined,
    receivesOwnCreation: true,
    hostOf: (target) => new URL((target as TargetMembers & SplunkMembers).url).host,
    check: (tenant, { url }) => faultsOfUrl('target.url', String(url), http, tenant),

    textsOf(sending, changes) {
      const { format = 'annals', index, sourcetype } = membersOf(sending);
      const source = sourceOf({ tenant: sending.tenant, baseUrl });
      const texts = textsOf(changes, { ...sending, format, baseUrl });
      return changes.map((change, place) => eventText(change, texts[place] ?? '', { source, index, sourcetype }));
    },
    join: (_sending, texts) => joinedTexts(texts, 'ndjson'),

    async deliverBatch(sending, { text, receipt }) {
      if (receipt !== undefined) return await acknowledged(sending, receipt);
      return text === '' ? { outcome: 'delivered', isAbsent: true } : await send(sending, text);
    },

    async test(sending) {
      return resultOfTest(await send(sending, this.join(sending, this.textsOf(sending, [sampleChange(now())]))));
    },
  };
}

/** A stable GUID for a subscription. */
function channelOf({ tenant, subscription }: Sending): string {
  const hex = uuidOf(JSON.stringify(['Splunk', tenant, subscription]));
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function eventText(
  { at }: DeliveredChange,
  event: string,
  head: { source: string; index: string | undefined; sourcetype: string | undefined },
): string {
  // Seconds with three decimals.
  const time = `${Math.floor(at / 1_000)}.${String(at % 1_000).padStart(3, '0')}`;
  return `{"time":${time},${JSON.stringify(head).slice(1, -1)},"event":${event}}`;
}

/** Adds the collector's reason: `Incorrect index (code 7).` */
function explained(answer: Exchange): BatchResult {
  const { code, text } = collectorResponse(answer);
  const { result } = answer;
  const { outcome, error } = result;
  if (result.answer === undefined || typeof code !== 'number' || typeof text !== 'string') return result;
  return resultWith(answer, outcome, `${error} ${text.slice(0, 200)} (code ${code}).`);
}

function collectorResponse({ answer }: Exchange): CollectorResponse {
  try {
    const body: unknown = JSON.parse(answer?.body.toString('utf8') ?? '');
    return isObject(body) ? body : {};
  } catch {
    return {};
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
