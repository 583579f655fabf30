import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { AwsV4Signer } from 'aws4fetch';
import type { Exchange, GuardedHttp } from '../targets/guarded-http.ts';
import { faultsOfUrl, type S3Members, S3Target } from '../targets/schemas.ts';
import type { Sending, TargetMembers } from '../targets/target.ts';
import {
  type BatchResult,
  type BatchTarget,
  type DayManifest,
  type DeliveredBatch,
  resultOfTest,
  resultWith,
} from './batch-target.ts';
import { joinedTexts, textsOf } from './batch-text.ts';
import { sampleChange } from './sample-change.ts';

interface Bucket {
  /** Default: Amazon's endpoint of the region. */
  readonly endpoint?: string;
  readonly region: string;
  readonly bucket: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

interface SignedRequest {
  readonly method: 'HEAD' | 'PUT';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Object metadata with the SHA-256 of the uncompressed text, in hexadecimal digits. */
const hashHeader = 'x-amz-meta-annals-sha256';

/** The path-style URL of an object: every S3 server supports it, and the bucket does not become part of the host. */
function addressOf({ endpoint, region, bucket }: Bucket, key: string): URL {
  const base = (endpoint ?? `https://s3.${region}.amazonaws.com`).replace(/\/+$/, '');
  return new URL(`${base}/${bucket}/${key.split('/').map(encoded).join('/')}`);
}

/** Object metadata with the number of changes. */
const changesHeader = 'x-amz-meta-annals-changes';

/** A request for an object with a Signature Version 4 that covers the body and all headers. */
async function signedRequest(
  bucket: Bucket,
  {
    method,
    key,
    headers,
    body,
  }: { method: 'HEAD' | 'PUT'; key: string; headers: Record<string, string>; body: Buffer },
  now: number,
): Promise<SignedRequest> {
  const signer = new AwsV4Signer({
    method,
    url: addressOf(bucket, key).href,
    headers: { ...headers, 'x-amz-content-sha256': createHash('sha256').update(body).digest('hex') },
    accessKeyId: bucket.accessKeyId,
    secretAccessKey: bucket.secretAccessKey,
    service: 's3',
    region: bucket.region,
    datetime: new Date(now).toISOString().replace(/[:-]|\.\d{3}/g, ''),
  });
  const signed = await signer.sign();
  return { method, url: signed.url.href, headers: Object.fromEntries(signed.headers) };
}

/** Percent-encodes per RFC 3986, as the signature does. */
function encoded(segment: string): string {
  return encodeURIComponent(segment).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

const compress = promisify(gzip);

interface ObjectToStore {
  readonly key: string;
  readonly body: Buffer;
  readonly mediaType: string;
  /** Hashes of the uncompressed text that an existing object may have. */
  readonly hashes: readonly string[];
  readonly sha256: string;
  readonly changes: number;
}

export interface S3Options {
  http: GuardedHttp;
  baseUrl: string | undefined;
  now: () => number;
  /** Stores without conditional writes that the operator allows, as `host` or `host:port`. */
  unconditional: readonly string[];
}

const noCondition =
  'The store does not support If-None-Match, which keeps an object from being overwritten. The operator can accept that: ' +
  'ANNALS_S3_UNCONDITIONAL.';

const objectMissing = (key: string) =>
  `The store refused the object as if it were there (412), and has none of this name: ${key}. If that persists, it does not support If-None-Match.`;

/** Stores batches as objects in a bucket. The key contains the bounds, and an existing object is never overwritten. */
export function createS3Target({ http, baseUrl, now, unconditional }: S3Options): BatchTarget {
  const membersOf = ({ target }: Pick<Sending, 'target'>) => target as TargetMembers & S3Members;
  const folderOf = (sending: Sending, day: string) =>
    `${membersOf(sending).prefix ?? ''}${sending.subscription}/date=${day}`;
  const keyOf = (sending: Sending, { day, first, last }: Pick<DeliveredBatch, 'day' | 'first' | 'last'>) =>
    `${folderOf(sending, day)}/${first}-${last}.ndjson.gz`;

  async function send(
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

  /** Stores an object unless it exists. Without `If-None-Match`, a concurrent object is overwritten. */
  async function put(sending: Sending, { key, mediaType, body, sha256, changes }: ObjectToStore): Promise<Exchange> {
    const headers = {
      'content-type': mediaType,
      [hashHeader]: sha256,
      [changesHeader]: String(changes),
      ...(!isUnconditional(sending) && { 'if-none-match': '*' }),
    };
    return await send(sending, 'PUT', key, headers, body);
  }

  async function store(sending: Sending, object: ObjectToStore): Promise<BatchResult> {
    if (isUnconditional(sending)) {
      const found = await compare(sending, object);
      if (found.isAbsent !== true) return found;
    }
    const stored = await put(sending, object);
    return stored.answer?.status === 412 ? await compare(sending, object, stored) : explained(stored);
  }

  /** Decides whether an existing object is an earlier attempt or a different object. */
  async function compare(
    sending: Sending,
    { key, hashes }: Pick<ObjectToStore, 'key' | 'hashes'>,
    refusal?: Exchange,
  ): Promise<BatchResult> {
    const found = await send(sending, 'HEAD', key, {}, Buffer.alloc(0));
    if (found.answer === undefined) return found.result;
    const { status, headers } = found.answer;
    if (status === 404 && refusal === undefined) return { ...resultWith(found, 'delivered'), isAbsent: true };
    if (status === 404) return resultWith(refusal ?? found, 'failed', objectMissing(key));
    if (status !== 200) {
      return resultWith(found, 'failed', 'The existing object cannot be read: allow s3:GetObject and s3:ListBucket.');
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
    receivesOwnCreation: true,
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
      // Each sample has its own key: an existing object would prevent the write, and nothing would be tested.
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
        // A restored database does not know everything that the first manifest lists. Together they are complete.
        return await store(sending, {
          ...manifest,
          key: `${folderOf(sending, day)}/manifest-${sha256.slice(0, 16)}.json`,
        });
      },
    },
  };
}

/** Adds S3's error code, unless the response must stay hidden. */
function explained({ result, answer }: Exchange): BatchResult {
  const { outcome, status, error } = result;
  if (status === undefined || outcome === 'delivered') return result;
  if (status === 501) return { ...result, error: `${error} ${noCondition}` };
  if (result.answer === undefined) return result;
  const [, code] = /<Code>([A-Za-z]{1,100})<\/Code>/.exec(answer?.body.toString('latin1') ?? '') ?? [];
  const isMoved = status >= 300 && status < 400;
  const parts = [error, code && `${code}.`, isMoved && 'Is this the region of the bucket?'].filter(Boolean);
  return { ...result, error: parts.join(' ') };
}
