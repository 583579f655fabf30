import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Exchange, GuardedHttp } from '../targets/guarded-http.ts';
import type { Sending, TargetMembers } from '../targets/target.ts';
import { faultsOfUrl } from '../targets/url.ts';
import type { BatchResult, BatchTarget, DayManifest, DeliveredBatch } from './batch-target.ts';
import { resultOfTest, resultWith } from './batch-target.ts';
import { joinedTexts, textsOf } from './batch-text.ts';
import { addressOf, changesHeader, hashHeader, signedRequest } from './s3-request.ts';
import { sampleChange } from './sample-change.ts';
import { type S3Members, S3Target } from './target-schemas.ts';

const compress = promisify(gzip);

interface ObjectToStore {
  readonly key: string;
  readonly body: Buffer;
  readonly mediaType: string;
  /** Of the unpacked text: the object that is there may have one of these. */
  readonly hashes: readonly string[];
  readonly sha256: string;
  readonly changes: number;
}

export interface S3Options {
  http: GuardedHttp;
  baseUrl: string | undefined;
  now: () => number;
  /** Stores without conditional writes that the operator accepts, as `host` or `host:port`. */
  unconditional: readonly string[];
}

const noCondition =
  'The store does not support If-None-Match, which keeps an object from being overwritten. The operator can accept that: ' +
  'ANNALS_S3_UNCONDITIONAL.';

const notThere = (key: string) =>
  `The store refused the object as if it were there (412), and has none of this name: ${key}. If that persists, it does not support If-None-Match.`;

/** Objects in a bucket, each stored once: its name says which changes it has, and an object that is there is never written again. */
export function createS3Target({ http, baseUrl, now, unconditional }: S3Options): BatchTarget {
  const membersOf = ({ target }: Pick<Sending, 'target'>) => target as TargetMembers & S3Members;
  const folderOf = (sending: Sending, day: string) =>
    `${membersOf(sending).prefix ?? ''}${sending.subscription}/date=${day}`;
  const keyOf = (sending: Sending, { day, first, last }: Pick<DeliveredBatch, 'day' | 'first' | 'last'>) =>
    `${folderOf(sending, day)}/${first}-${last}.ndjson.gz`;

  async function ask(
    sending: Sending,
    method: 'HEAD' | 'PUT',
    key: string,
    headers: Record<string, string>,
    body: Buffer,
  ) {
    const request = await signedRequest(membersOf(sending), { method, key, headers, body }, now());
    return await http.send(sending.tenant, { ...request, body, signal: sending.signal });
  }

  const isUnconditional = (sending: Sending) => unconditional.includes(addressOf(membersOf(sending), '').host);

  /** Stores an object unless there is one. Without a condition an object that comes between the two requests is overwritten. */
  async function put(sending: Sending, { key, mediaType, body, sha256, changes }: ObjectToStore): Promise<Exchange> {
    const headers = {
      'content-type': mediaType,
      [hashHeader]: sha256,
      [changesHeader]: String(changes),
      ...(!isUnconditional(sending) && { 'if-none-match': '*' }),
    };
    return await ask(sending, 'PUT', key, headers, body);
  }

  async function store(sending: Sending, object: ObjectToStore): Promise<BatchResult> {
    if (isUnconditional(sending)) {
      const found = await compare(sending, object);
      if (found.isAbsent !== true) return found;
    }
    const stored = await put(sending, object);
    return stored.answer?.status === 412 ? await compare(sending, object, stored) : explained(stored);
  }

  /** Something is there: an earlier attempt of ours, or another object. */
  async function compare(
    sending: Sending,
    { key, hashes }: Pick<ObjectToStore, 'key' | 'hashes'>,
    refusal?: Exchange,
  ): Promise<BatchResult> {
    const found = await ask(sending, 'HEAD', key, {}, Buffer.alloc(0));
    if (found.answer === undefined) return found.result;
    const { status, headers } = found.answer;
    if (status === 404 && refusal === undefined) return { ...resultWith(found, 'delivered'), isAbsent: true };
    if (status === 404) return resultWith(refusal ?? found, 'failed', notThere(key));
    if (status !== 200) {
      return resultWith(
        found,
        'failed',
        'The object that is there cannot be looked at: allow s3:GetObject and s3:ListBucket.',
      );
    }
    const sha256 = String(headers[hashHeader]);
    if (hashes.includes(sha256)) {
      return { ...resultWith(found, 'delivered'), found: { sha256, changes: Number(headers[changesHeader]) } };
    }
    return resultWith(refusal ?? found, 'suspended', `The bucket has another object of this name: ${key}`);
  }

  return {
    type: 's3',
    schema: S3Target,
    secrets: ['secretAccessKey'],
    maxAge: undefined,
    hostOf: (target) => addressOf(target as TargetMembers & S3Members, '').host,
    check: (tenant, { endpoint }) =>
      endpoint === undefined ? [] : faultsOfUrl('target.endpoint', String(endpoint), http, tenant),

    textsOf: (sending, changes) =>
      textsOf(changes, { ...sending, format: membersOf(sending).format ?? 'annals', baseUrl }),
    join: (_sending, texts) => joinedTexts(texts, 'ndjson'),

    async deliverBatch(sending, batch) {
      const { hashes, sha256, changes } = batch;
      const object = { key: keyOf(sending, batch), hashes, sha256, changes };
      if (batch.text === '') return await compare(sending, object);
      return await store(sending, { ...object, body: await compress(batch.text), mediaType: 'application/gzip' });
    },

    async test(sending) {
      const text = this.join(sending, this.textsOf(sending, [sampleChange(now())]));
      const sha256 = createHash('sha256').update(text).digest('hex');
      // Each sample has its own name: an earlier one would keep it from being written, and nothing would be tested.
      const name = `test-${sha256.slice(0, 16)}.json`;
      const key = `${membersOf(sending).prefix ?? ''}${sending.subscription}/${name}`;
      const sample = {
        key,
        body: Buffer.from(text),
        mediaType: 'application/json',
        hashes: [sha256],
        sha256,
        changes: 0,
      };
      return resultOfTest(await store(sending, sample));
    },

    objects: {
      keyOf,
      async deliverManifest(sending, { day, text, sha256, changes }: DayManifest) {
        const manifest = { body: Buffer.from(text), mediaType: 'application/json', hashes: [sha256], sha256, changes };
        const stored = await store(sending, { ...manifest, key: `${folderOf(sending, day)}/manifest.json` });
        if (stored.outcome !== 'suspended') return stored;
        // A restored database does not know all that the first one lists. Together they list everything.
        return await store(sending, {
          ...manifest,
          key: `${folderOf(sending, day)}/manifest-${sha256.slice(0, 16)}.json`,
        });
      },
    },
  };
}

/** S3 names its errors. What is hidden of an answer stays hidden. */
function explained({ result, answer }: Exchange): BatchResult {
  const { outcome, status, error } = result;
  if (status === undefined || outcome === 'delivered') return result;
  if (status === 501) return { ...result, error: `${error} ${noCondition}` };
  if (result.answer === undefined) return result;
  const [, code] = /<Code>([A-Za-z]{1,100})<\/Code>/.exec(answer?.body.toString('latin1') ?? '') ?? [];
  const isMoved = status >= 300 && status < 400;
  const told = [error, code && `${code}.`, isMoved && 'Is this the region of the bucket?'].filter(Boolean);
  return { ...result, error: told.join(' ') };
}
